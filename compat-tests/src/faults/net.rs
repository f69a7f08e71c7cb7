//! Nodes in network namespaces of their own, behind a bridge in which any directed pair can be cut. The bridge has a namespace of its
//! own, so that no rule of this machine is touched. Needs root, `ip` and `nft`.

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// What cuts: pairs of addresses whose packets are dropped in silence.
const TABLE: &str = "table bridge chaos {
  set cut { type ipv4_addr . ipv4_addr; }
  chain forward {
    type filter hook forward priority 0; policy accept;
    ip saddr . ip daddr @cut counter drop
  }
}
";

/// The clients' place on the network, beside the nodes 1 to n.
pub const CLIENTS: i32 = 9;

/// A switch with a cable to each node and one to the clients; gone when dropped.
pub struct Net {
    name: String,
    subnet: u8,
    nodes: i32,
}

impl Net {
    /// The network, or why there can be none.
    pub fn new(nodes: i32) -> Result<Net, String> {
        if !is_root() {
            return Err("not root".into());
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let subnet = 60 + u8::try_from(process.wrapping_add(count) % 150).unwrap_or(0);
        // Dropped, and so taken down, when a step fails. Names of cables have at most 15 letters.
        let net = Net { name: format!("bf{}x{}", process % 100_000, count % 100), subnet, nodes };
        net.build()?;
        Ok(net)
    }

    fn build(&self) -> Result<(), String> {
        let switch = self.switch();
        ip(&["netns", "add", &switch])?;
        ip(&["-n", &switch, "link", "add", "br0", "type", "bridge"])?;
        ip(&["-n", &switch, "link", "set", "br0", "up"])?;
        for node in 1..=self.nodes {
            let (space, port) = (self.space(node), format!("p{node}"));
            ip(&["netns", "add", &space])?;
            ip(&["link", "add", "eth0", "netns", &space, "type", "veth", "peer", "name", &port, "netns", &switch])?;
            ip(&["-n", &switch, "link", "set", &port, "master", "br0", "up"])?;
            ip(&["-n", &space, "addr", "add", &format!("{}/24", self.address(node)), "dev", "eth0"])?;
            ip(&["-n", &space, "link", "set", "eth0", "up"])?;
            ip(&["-n", &space, "link", "set", "lo", "up"])?;
        }
        let cable = self.cable();
        ip(&["link", "add", &cable, "type", "veth", "peer", "name", "clients", "netns", &switch])?;
        ip(&["-n", &switch, "link", "set", "clients", "master", "br0", "up"])?;
        ip(&["addr", "add", &format!("{}/24", self.address(CLIENTS)), "dev", &cable])?;
        ip(&["link", "set", &cable, "up"])?;
        run("ip", &["netns", "exec", &switch, "nft", "-f", "-"], TABLE)
    }

    pub fn address(&self, node: i32) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.subnet, u8::try_from(node).unwrap_or(0))
    }

    /// What to put before a command to run it as this node.
    pub fn prefix(&self, node: i32) -> Vec<String> {
        ["ip", "netns", "exec", &self.space(node)].map(String::from).to_vec()
    }

    /// Drops what goes from the first to the second of each pair.
    pub fn cut(&self, pairs: &[(i32, i32)]) {
        let pairs: Vec<String> =
            pairs.iter().map(|(from, to)| format!("{} . {}", self.address(*from), self.address(*to))).collect();
        self.nft(&format!("add element bridge chaos cut {{ {} }}", pairs.join(", ")));
    }

    pub fn heal(&self) {
        self.nft("flush set bridge chaos cut");
    }

    fn nft(&self, rule: &str) {
        run("ip", &["netns", "exec", &self.switch(), "nft", "-f", "-"], &format!("{rule}\n")).expect("nft");
    }

    fn switch(&self) -> String {
        format!("{}sw", self.name)
    }

    fn cable(&self) -> String {
        format!("{}c", self.name)
    }

    fn space(&self, node: i32) -> String {
        format!("{}n{node}", self.name)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = ip(&["link", "del", &self.cable()]);
        for space in (1..=self.nodes).map(|node| self.space(node)).chain([self.switch()]) {
            let _ = ip(&["netns", "del", &space]);
        }
    }
}

/// Both directions between a node and each of the others.
pub fn both_ways(node: i32, others: &[i32]) -> Vec<(i32, i32)> {
    others.iter().flat_map(|other| [(node, *other), (*other, node)]).collect()
}

/// Whether this process may do as it likes.
pub(super) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    run("ip", arguments, "")
}

/// Runs a program to its end; why it failed.
pub(super) fn run(program: &str, arguments: &[&str], input: &str) -> Result<(), String> {
    let what = || format!("{program} {}", arguments.join(" "));
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", what()))?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| format!("{}: {error}", what()))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
    if output.status.success() { Ok(()) } else { Err(format!("{}: {said}", what())) }
}
