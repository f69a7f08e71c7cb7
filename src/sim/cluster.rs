//! Three machines on one network, and what can be done to them.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::dice::Dice;
use super::history::History;
use super::process::{Process, Stage};
use crate::api::Broker;
use crate::config::{self, BrokerSettings, Sources};
use crate::host::Clock;
use crate::host::life::Life;
use crate::host::net::Net;
use crate::host::sim::{Crash, RuntimeClock, SimEntropy, SimHost, SimNet};

pub const NODES: usize = 3;
pub const NAMES: [&str; NODES] = ["one", "two", "three"];
pub const PORT: u16 = 9092;

/// How long a visit to a healthy device takes, in microseconds.
const DEVICE_MICROS: Range<u64> = 50..4_000;

/// What is counted under these names excuses a node's complaints, and that it ends.
pub const DISK_TROUBLE: [&str; 2] = ["full disks", "failed syncs"];

/// When the run begins, by the nodes' clocks.
const BEGAN_MS: i64 = 1_700_000_000_000;

pub struct Machine {
    host: SimHost,
    pub ip: IpAddr,
    process: RefCell<Option<Process>>,
    /// Bounds of a visit to its device, in microseconds.
    device: Arc<[AtomicU64; 2]>,
    starts: AtomicU64,
}

pub struct Cluster {
    pub net: SimNet,
    pub machines: Vec<Machine>,
    pub clock: Arc<dyn Clock>,
    settings: Vec<String>,
    seed: u64,
    pub history: Rc<History>,
}

fn ip(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
}

/// The rack of a machine: each has its own.
pub fn rack(at: usize) -> String {
    format!("rack-{}", at + 1)
}

impl Cluster {
    /// Machines with empty disks. `settings` go to every node.
    pub fn new(seed: u64, settings: Vec<String>, history: Rc<History>) -> Cluster {
        let net = SimNet::new(seed);
        let machine = |(number, name): (u8, &str)| Machine {
            host: SimHost::on(&net, name, ip(number), Dice::new(seed, u64::from(number)).below(u64::MAX)),
            ip: ip(number),
            process: RefCell::new(None),
            device: Arc::new([AtomicU64::new(DEVICE_MICROS.start), AtomicU64::new(DEVICE_MICROS.end)]),
            starts: AtomicU64::new(0),
        };
        let machines = (1..).zip(NAMES).map(machine).collect();
        Cluster { machines, clock: Arc::new(RuntimeClock::new(BEGAN_MS)), settings, seed, net, history }
    }

    /// A machine for clients.
    pub fn client(&self, number: u8) -> (Arc<dyn Net>, IpAddr) {
        let ip = ip(100 + number);
        (self.net.machine(&format!("client-{number}"), ip), ip)
    }

    fn settings(&self, at: usize) -> BrokerSettings {
        let name = NAMES[at];
        let mut set = vec![
            format!("node.id={}", at + 1),
            format!("listeners=PLAINTEXT://{name}:{PORT},CONTROLLER://{name}:9093"),
            "controller.quorum.voters=1@one:9093,2@two:9093,3@three:9093".to_owned(),
            "log.dirs=/data".to_owned(),
            "http.listener=".to_owned(),
            "num.network.threads=1".to_owned(),
            format!("broker.rack={}", rack(at)),
            "replica.selector.class=RackAwareReplicaSelector".to_owned(),
        ];
        set.extend(self.settings.iter().cloned());
        let sources = Sources { set, ..Sources::default() };
        config::load(&sources, &*self.machines[at].host.disk).unwrap().settings
    }

    pub fn broker(&self, at: usize) -> Option<Arc<Broker>> {
        self.machines[at].process.borrow().as_ref().and_then(Process::broker)
    }

    /// The brokers that run, with their places.
    pub fn brokers(&self) -> impl Iterator<Item = (usize, Arc<Broker>)> {
        (0..NODES).filter_map(|at| Some((at, self.broker(at)?)))
    }

    pub fn stage(&self, at: usize) -> Option<Stage> {
        self.machines[at].process.borrow().as_ref().map(|process| process.stage().borrow().clone())
    }

    /// Starts a process where none runs.
    pub fn start(&self, at: usize) {
        let machine = &self.machines[at];
        if machine.process.borrow().is_some() {
            return;
        }
        let start = machine.starts.fetch_add(1, Ordering::SeqCst);
        self.history.note(&format!("start {}", NAMES[at]));
        let pauses = SimEntropy::new(self.seed ^ (at as u64) << 8 ^ start << 16);
        let device = machine.device.clone();
        let pause = move || {
            let [min, max] = [&device[0], &device[1]].map(|bound| bound.load(Ordering::Relaxed));
            Duration::from_micros(min + pauses.below(max - min))
        };
        let life = Life::new(tracing::info_span!("run", node = NAMES[at], start), Box::new(pause));
        let host = machine.host.restarted().host_with(self.clock.clone());
        *machine.process.borrow_mut() = Some(Process::begin(life, host, self.settings(at)));
    }

    /// The process ends at once, with what `how` leaves of the disk.
    pub async fn crash(&self, at: usize, how: Crash) {
        let machine = &self.machines[at];
        if how != Crash::Process {
            self.note_unsynced(at);
        }
        let process = machine.process.borrow_mut().take();
        self.history.note(&format!("crash {} {how:?} running={}", NAMES[at], process.is_some()));
        self.history.end_of(at);
        machine.host.disk.crash(how);
        self.net.crash(machine.ip);
        if let Some(process) = process {
            process.end().await;
        }
    }

    fn note_unsynced(&self, at: usize) {
        let Some(broker) = self.broker(at) else { return };
        for place in self.history.places() {
            let partition = broker.partitions.partition(&place.topic, place.partition);
            let open = partition.filter(|partition| partition.is_leader() && partition.view_if_open().is_some());
            if let Some(partition) = open {
                self.history.unsynced(&place, partition.durable_below());
            }
        }
    }

    /// What can be rebuilt is gone.
    pub fn wipe_stores(&self, at: usize) {
        self.machines[at].host.stores.wipe();
    }

    /// Asks the process to stop, and waits until it has.
    pub async fn stop(&self, at: usize, longest: Duration) {
        let stage = {
            let process = self.machines[at].process.borrow();
            let Some(process) = process.as_ref() else { return };
            process.stop();
            process.stage()
        };
        self.history.note(&format!("stop {}", NAMES[at]));
        let mut stage = stage;
        let stopped = stage.wait_for(|stage| matches!(stage, Stage::Ended(_)));
        let is_clean = crate::host::task::timeout(longest, stopped).await.is_some();
        self.history.note(&format!("stopped {} in time: {is_clean}", NAMES[at]));
        self.crash(at, Crash::Process).await;
    }

    pub fn set_device(&self, at: usize, micros: Range<u64>) {
        let [min, max] = &*self.machines[at].device;
        min.store(micros.start, Ordering::Relaxed);
        max.store(micros.end.max(micros.start + 1), Ordering::Relaxed);
    }

    /// So many more bytes fit on the disk.
    pub fn fill_disk(&self, at: usize, room_bytes: u64) {
        let disk = &self.machines[at].host.disk;
        disk.set_capacity_bytes(disk.used_bytes() + room_bytes);
    }

    /// Network and devices are as good as new.
    pub fn heal(&self) {
        self.history.note("heal");
        self.net.heal_all();
        for at in 0..NODES {
            self.mend_machine(at);
            self.go_on(at);
        }
    }

    /// What `from` sends to `to` as brokers stays on its way; what they say as controllers gets through.
    pub fn cut_data(&self, from: usize, to: usize) {
        self.net.cut_at_door(self.machines[from].ip, self.machines[to].ip, PORT);
    }

    /// SIGSTOP for the process, if one runs.
    pub fn stand_still(&self, at: usize) {
        if let Some(process) = &*self.machines[at].process.borrow() {
            process.stand_still();
        }
    }

    /// SIGCONT.
    pub fn go_on(&self, at: usize) {
        if let Some(process) = &*self.machines[at].process.borrow() {
            process.go_on();
        }
    }

    /// The device fails once, at the `count`th sync from now.
    pub fn fail_sync(&self, at: usize, count: u64) {
        self.machines[at].host.disk.fail_sync_at(count);
    }

    /// How many syncs have failed on all disks.
    pub fn failed_syncs(&self) -> u64 {
        self.machines.iter().map(|machine| machine.host.disk.failed_syncs()).sum()
    }

    pub fn disks_had_trouble(&self) -> bool {
        self.failed_syncs() > 0 || self.history.counted(DISK_TROUBLE[0]) > 0
    }

    pub fn mend_machine(&self, at: usize) {
        self.machines[at].host.disk.fail_no_sync();
        self.set_device(at, DEVICE_MICROS);
        self.machines[at].host.disk.set_capacity_bytes(u64::MAX);
    }
}
