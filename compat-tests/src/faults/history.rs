//! What the clients did and were told, in the order of one monotonic clock. An invocation is written, to memory and to a file, before the
//! call is made; its completion carries the same operation number. A new kind of operation (a transaction, say) is one more [`Action`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How an operation ended: `Fail` only when it is proven that nothing happened; whatever is not known is `Info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Ok,
    Fail,
    Info,
}

/// Who read a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// Assigned by hand from a known offset: must see everything, in order.
    Strict,
    /// A member of a group, whose partitions come and go.
    Group,
    /// The full read when all is healed.
    Final,
}

/// One event. All of a history are of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A producer is about to send a value that nobody else sends.
    Send {
        partition: i32,
        value: u64,
        idempotent: bool,
    },
    /// The delivery report; the offset of an acknowledged record.
    Sent {
        value: u64,
        outcome: Outcome,
        offset: i64,
        error: String,
    },
    /// A strict reader goes to an offset.
    Seek {
        partition: i32,
        offset: i64,
    },
    Read {
        by: By,
        partition: i32,
        offset: i64,
        value: u64,
    },
    /// A member was given, or gives up, partitions.
    Assigned {
        generation: i32,
        partitions: Vec<i32>,
    },
    Revoked {
        generation: i32,
        partitions: Vec<i32>,
    },
    Commit {
        partition: i32,
        offset: i64,
    },
    Committed {
        partition: i32,
        offset: i64,
        outcome: Outcome,
    },
    /// The committed offset is asked for, and what was told; -1 is none.
    AskCommitted {
        partition: i32,
    },
    ToldCommitted {
        partition: i32,
        offset: i64,
    },
    /// A node says who leads.
    Led {
        partition: i32,
        leader: i32,
        epoch: i32,
    },
    /// A stored batch as a node serves it.
    Batch {
        node: i32,
        partition: i32,
        base: i64,
        last: i64,
        epoch: i32,
        crc: u32,
    },
    /// The high watermark of a leader that agreed to this epoch.
    HighWatermark {
        node: i32,
        partition: i32,
        epoch: i32,
        offset: i64,
    },
    Fault {
        name: String,
        node: i32,
    },
    Healed {
        name: String,
        node: i32,
    },
    /// What a client's library logs.
    Log {
        text: String,
    },
}

/// An action, when it was, by which client, and the operation that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Duration,
    pub process: u32,
    pub op: u64,
    pub action: Action,
}

/// Takes events from all clients.
pub struct Recorder {
    began: Instant,
    ops: AtomicU64,
    events: Mutex<Vec<Event>>,
    reached: Mutex<BTreeMap<(By, i32), i64>>,
    file: Option<(PathBuf, File)>,
}

impl Recorder {
    /// Keeps a copy in this file, line by line, so that it is there when the test is killed.
    pub fn with_file(path: &Path) -> Recorder {
        let file = File::create(path).expect("the history file");
        Recorder { file: Some((path.into(), file)), ..Recorder::in_memory() }
    }

    pub fn in_memory() -> Recorder {
        Recorder {
            began: Instant::now(),
            ops: AtomicU64::new(1),
            events: Mutex::default(),
            reached: Mutex::default(),
            file: None,
        }
    }

    /// A number that no operation and no value has had.
    pub fn number(&self) -> u64 {
        self.ops.fetch_add(1, Ordering::Relaxed)
    }

    /// Before the call: gives the operation's number.
    pub fn invoke(&self, process: u32, action: Action) -> u64 {
        let op = self.number();
        self.put(process, op, action);
        op
    }

    /// An event of an operation that has a number.
    pub fn put(&self, process: u32, op: u64, action: Action) {
        let mut events = self.events.lock().expect("lock");
        // The clock is read under the lock, so that the list is in its order.
        let event = Event { at: self.began.elapsed(), process, op, action };
        if let Some((_, file)) = &self.file {
            let mut file = file;
            let line = format!("{} {} {} {:?}\n", event.at.as_nanos(), process, op, event.action);
            file.write_all(line.as_bytes()).expect("the history file takes a line");
        }
        if let Action::Read { by, partition, offset, .. } = event.action {
            let mut reached = self.reached.lock().expect("lock");
            let highest = reached.entry((by, partition)).or_insert(-1);
            *highest = (*highest).max(offset);
        }
        events.push(event);
    }

    /// The highest offset that these readers were given; -1 when none.
    pub fn reached(&self, by: By, partition: i32) -> i64 {
        self.reached.lock().expect("lock").get(&(by, partition)).copied().unwrap_or(-1)
    }

    /// Partitions in which a record of this producer was acknowledged.
    pub fn acknowledged_by(&self, process: u32) -> BTreeSet<i32> {
        let events = self.events.lock().expect("lock");
        let mut sent = BTreeMap::new();
        let mut acknowledged = BTreeSet::new();
        for event in events.iter().filter(|event| event.process == process) {
            match event.action {
                Action::Send { partition, value, .. } => {
                    sent.insert(value, partition);
                }
                Action::Sent { value, outcome: Outcome::Ok, .. } => acknowledged.extend(sent.get(&value)),
                _ => {}
            }
        }
        acknowledged
    }

    /// Something seen, no operation.
    pub fn note(&self, process: u32, action: Action) {
        self.put(process, 0, action);
    }

    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn events(&self) -> Vec<Event> {
        self.events.lock().expect("lock").clone()
    }

    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }
}
