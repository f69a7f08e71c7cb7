//! One broker under test: the real binary on its own ports and directory, stopped when dropped, and killed or restarted on demand.
//! With `BARNABAS_ADDRESS=HOST:PORT` the tests run against a broker that is already there (Apache Kafka, say) instead; those that need
//! to own the process then return early.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::wait::until;
use crate::wire::Connection;
use crate::{binary, ports};

/// How long a broker may take to answer its first request, generous for a debug build on a busy machine.
const START_MAX: Duration = Duration::from_secs(30);
const STOP_MAX: Duration = Duration::from_secs(20);

/// A broker and how to reach it.
pub struct Broker {
    address: SocketAddr,
    owned: Option<Owned>,
}

struct Owned {
    directory: TempDir,
    /// Where the data is, when not in the directory.
    data: Option<PathBuf>,
    http: SocketAddr,
    settings: Vec<String>,
    /// What is put before the binary to run it elsewhere, in a network namespace.
    prefix: Vec<String>,
    child: Option<Child>,
}

impl Broker {
    /// A fresh broker with four partitions a topic and no rebalance delay, or the external one.
    pub fn start() -> Broker {
        match std::env::var("BARNABAS_ADDRESS") {
            Ok(address) => Broker { address: address.parse().expect("BARNABAS_ADDRESS is IP:PORT"), owned: None },
            Err(_) => Broker::ours(&[]),
        }
    }

    /// A fresh broker with these settings on top, for tests that kill, restart or look into the process; none when the broker under
    /// test is an external one.
    pub fn owned(settings: &[(&str, &str)]) -> Option<Broker> {
        std::env::var("BARNABAS_ADDRESS").is_err().then(|| Broker::ours(settings))
    }

    fn ours(settings: &[(&str, &str)]) -> Broker {
        let mut broker = Broker::prepared(settings);
        broker.run();
        broker
    }

    /// A fresh broker that has not been started.
    pub fn prepared(settings: &[(&str, &str)]) -> Broker {
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let owned = Owned {
            directory: tempfile::Builder::new().prefix("barnabas-test-").tempdir().expect("a temporary directory"),
            data: None,
            http: local(ports::free()),
            settings: settings.iter().map(|(key, value)| format!("{key}={value}")).collect(),
            prefix: Vec::new(),
            child: None,
        };
        Broker { address: local(ports::free()), owned: Some(owned) }
    }

    /// Moves a broker that has not been started to another address, where this command takes it.
    pub fn place(&mut self, address: IpAddr, prefix: Vec<String>) {
        self.address.set_ip(address);
        self.own_mut().http.set_ip(address);
        self.own_mut().prefix = prefix;
    }

    /// Keeps the data of a broker that has not been started there.
    pub fn keep_data_in(&mut self, data: PathBuf) {
        self.own_mut().data = Some(data);
    }

    /// Sets something before the next start.
    pub fn set(&mut self, key: &str, value: &str) {
        self.own_mut().settings.push(format!("{key}={value}"));
    }

    /// Starts the process without waiting for it.
    pub fn spawn(&mut self) {
        let child = self.command().spawn().expect("the barnabas binary starts");
        self.own_mut().child = Some(child);
    }

    /// Whether the process has been started and not been ended by the test.
    pub fn is_up(&self) -> bool {
        self.own().child.is_some()
    }

    /// What `/readyz` says: `Ok` when the broker serves, else what it waits for.
    pub fn readiness(&self) -> Result<(), String> {
        let mut socket = TcpStream::connect_timeout(&self.http(), Duration::from_secs(1)).map_err(|e| e.to_string())?;
        let _ = socket.set_read_timeout(Some(Duration::from_secs(5)));
        let asked = socket.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        asked.map_err(|e| e.to_string())?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).map_err(|e| e.to_string())?;
        if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer.lines().last().unwrap_or_default().into()) }
    }

    /// `IP:PORT`, as clients want it.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Where the process serves `/metrics`.
    pub fn http(&self) -> SocketAddr {
        self.own().http
    }

    /// The directory with the partitions' logs.
    pub fn data(&self) -> PathBuf {
        self.own().data.clone().unwrap_or_else(|| self.directory().join("data"))
    }

    /// What the process has logged so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_path()).unwrap_or_default()).into_owned()
    }

    /// A raw connection of our own making.
    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    /// The socket address of the broker.
    pub fn socket_address(&self) -> SocketAddr {
        self.address
    }

    /// Resident memory of the process in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process_id())).expect("the process runs");
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number of KiB")
    }

    /// True while the process has not ended by itself.
    pub fn is_running(&mut self) -> bool {
        self.child().try_wait().expect("the state of the process").is_none()
    }

    /// SIGKILL, as a crash would be.
    pub fn kill(&mut self) {
        self.child().kill().expect("kill");
        self.child().wait().expect("the process ended");
        self.own_mut().child = None;
    }

    /// SIGSTOP: the process is there, its connections are open, and it does nothing.
    pub fn pause(&self) {
        signal(self.process_id(), libc::SIGSTOP);
    }

    /// SIGCONT after a pause.
    pub fn resume(&self) {
        signal(self.process_id(), libc::SIGCONT);
    }

    /// SIGTERM, and how long the process took to end; panics when it did not end well.
    pub fn stop(&mut self) -> Duration {
        let began = Instant::now();
        signal(self.process_id(), libc::SIGTERM);
        let child = self.child();
        let status = until("end after SIGTERM", STOP_MAX, || child.try_wait().expect("the state of the process"));
        assert!(status.success(), "SIGTERM ended the broker with {status}");
        self.own_mut().child = None;
        began.elapsed()
    }

    /// Starts the process again on the same port and data; gives the time until its first answer.
    pub fn run(&mut self) -> Duration {
        let began = Instant::now();
        self.spawn();
        let address = self.address;
        loop {
            if answers(address) {
                return began.elapsed();
            }
            assert!(self.is_running(), "the broker ended while starting:\n{}", tail(&self.log()));
            assert!(
                began.elapsed() < START_MAX,
                "no answer from {address} after {START_MAX:?}:\n{}",
                tail(&self.log())
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Crash and come back.
    pub fn kill_and_run(&mut self) -> Duration {
        self.kill();
        self.run()
    }

    /// End cleanly and come back.
    pub fn stop_and_run(&mut self) -> Duration {
        self.stop();
        self.run()
    }

    fn command(&self) -> Command {
        let own = self.own();
        let mut words = own.prefix.iter().map(|word| word.as_ref()).chain([binary::path().as_os_str()]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).arg("serve");
        let given = [
            format!("listeners=PLAINTEXT://{}", self.address),
            format!("log.dirs={}", self.data().display()),
            format!("http.listener={}", own.http),
            "num.partitions=4".into(),
            "group.initial.rebalance.delay.ms=0".into(),
        ];
        for setting in given.iter().chain(&own.settings) {
            command.args(["--set", setting]);
        }
        let log = File::options().create(true).append(true).open(self.log_path()).expect("the log file");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a second handle")).stderr(log);
        die_with_the_test(&mut command);
        command
    }

    fn log_path(&self) -> PathBuf {
        self.directory().join("log")
    }

    fn directory(&self) -> &Path {
        self.own().directory.path()
    }

    /// The process that runs.
    pub fn process_id(&self) -> u32 {
        self.own().child.as_ref().expect("the broker runs").id()
    }

    fn child(&mut self) -> &mut Child {
        self.own_mut().child.as_mut().expect("the broker runs")
    }

    fn own(&self) -> &Owned {
        self.owned.as_ref().expect("this needs a broker of our own, see Broker::owned")
    }

    fn own_mut(&mut self) -> &mut Owned {
        self.owned.as_mut().expect("this needs a broker of our own, see Broker::owned")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let Some(own) = &mut self.owned else { return };
        if let Some(mut child) = own.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "--- end of the broker's log\n{}", tail(&self.log()));
        }
    }
}

/// True when an ApiVersions request is answered.
fn answers(address: SocketAddr) -> bool {
    let Ok(mut socket) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else { return false };
    let _ = socket.set_read_timeout(Some(Duration::from_secs(5)));
    let api_versions_v0 = [0, 0, 0, 12, 0, 18, 0, 0, 0, 0, 0, 1, 0, 2, b'u', b'p'];
    let mut answer = [0; 8];
    socket.write_all(&api_versions_v0).is_ok() && socket.read_exact(&mut answer).is_ok()
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// Sends a signal to a process that these tests started.
pub fn signal(process: u32, number: i32) {
    let process = i32::try_from(process).expect("a process id");
    #[expect(unsafe_code, reason = "kill(2) has no safe wrapper in std")]
    // SAFETY: plain system call on a child we own.
    let result = unsafe { libc::kill(process, number) };
    assert_eq!(result, 0, "signal {number} to {process}");
}

/// The kernel ends the broker when the test's thread ends without dropping it.
fn die_with_the_test(command: &mut Command) {
    #[expect(unsafe_code, reason = "pre_exec is how std lets a child set its death signal")]
    // SAFETY: prctl is async-signal-safe and touches nothing of the parent.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
}
