//! Members of a consumer group, each a process of its own (`src/bin/group-member.rs`), so that a test can crash or stall one.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::Broker;
use crate::broker::signal;
use crate::wait::until;

/// How long a group may take to settle: a lost member is noticed after its session timeout of six seconds.
pub const SETTLE_MAX: Duration = Duration::from_secs(40);

/// One consumer process in a group.
pub struct Member {
    child: Child,
    seen: Arc<Mutex<Seen>>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    assigned: BTreeSet<i32>,
    revoked: Vec<BTreeSet<i32>>,
    records: Vec<(i32, i64)>,
    errors: Vec<String>,
}

impl Member {
    /// Starts `program` as a member of `group` that reads `topic`, with these client settings on top of short timeouts.
    pub fn join(program: &str, broker: &Broker, group: &str, topic: &str, settings: &[(&str, &str)]) -> Member {
        let mut command = Command::new(program);
        command.args([&broker.address(), group, topic]);
        command.args(settings.iter().map(|(key, value)| format!("{key}={value}")));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a member process");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let notes = Arc::clone(&seen);
        let listener = std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                note(&mut notes.lock().expect("lock"), &line);
            }
        });
        Member { child, seen, listener: Some(listener) }
    }

    /// The partitions it owns now, as it last said.
    pub fn assigned(&self) -> BTreeSet<i32> {
        self.look().assigned
    }

    /// Every set of partitions it was told to give up, in order.
    pub fn revoked(&self) -> Vec<BTreeSet<i32>> {
        self.look().revoked
    }

    /// Partition and offset of every record it has read.
    pub fn records(&self) -> Vec<(i32, i64)> {
        self.look().records
    }

    /// Every error that its client told it.
    pub fn errors(&self) -> Vec<String> {
        self.look().errors
    }

    fn look(&self) -> Seen {
        self.seen.lock().expect("lock").clone()
    }

    /// Leaves as a client does, by closing the consumer (a static member stays in the group); gives all that it had read.
    pub fn leave(mut self) -> Vec<(i32, i64)> {
        drop(self.child.stdin.take());
        let child = &mut self.child;
        until("a member that closes", SETTLE_MAX, || child.try_wait().expect("the member's state"));
        self.listener.take().map(JoinHandle::join).transpose().expect("its output was read");
        self.records()
    }

    /// SIGKILL: no leave, its session has to run out.
    pub fn crash(mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("the member ended");
    }

    /// SIGSTOP: alive but silent.
    pub fn stall(&self) {
        signal(self.child.id(), libc::SIGSTOP);
    }

    /// SIGCONT after a stall.
    pub fn go_on(&self) {
        signal(self.child.id(), libc::SIGCONT);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn note(seen: &mut Seen, line: &str) {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let numbers = || rest.split(' ').filter_map(|n| n.parse().ok());
    match word {
        "assigned" => seen.assigned = numbers().collect(),
        "revoked" => seen.revoked.push(numbers().collect()),
        "error" => seen.errors.push(rest.to_string()),
        "record" => {
            seen.records.extend(rest.split_once(' ').and_then(|(p, o)| Some((p.parse().ok()?, o.parse().ok()?))))
        }
        _ => {}
    }
}

/// How many partitions each member owns, most first.
pub fn shares<'a>(members: impl IntoIterator<Item = &'a Member>) -> Vec<usize> {
    let mut sizes: Vec<usize> = members.into_iter().map(|m| m.assigned().len()).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes
}

/// Waits until the members own exactly these shares and every partition has one owner.
#[track_caller]
pub fn settle(members: &[Member], shares_expected: &[usize]) {
    let partitions: usize = shares_expected.iter().sum();
    until(&format!("shares of {shares_expected:?}"), SETTLE_MAX, || {
        let owned: BTreeSet<i32> = members.iter().flat_map(Member::assigned).collect();
        (shares(members) == shares_expected && owned.len() == partitions).then_some(())
    });
}
