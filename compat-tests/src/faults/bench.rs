//! Three nodes under load, faults put upon them, and the verdict at the end.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};

use super::disk::Disk;
use super::history::{Action, By, Recorder};
use super::net::Net;
use super::plan::Fault;
use super::probe::{Picture, Probe};
use super::report::Report;
use super::{Violation, check, group, monitor, producers, readers};
use crate::clients::{CALL_MAX, config, create_replicated, unique};
use crate::{Cluster, until};

/// How long a node that comes back may take until every replica is in sync.
pub const RECOVERY_MAX: Duration = Duration::from_secs(60);
const OFFSETS: &str = "__consumer_offsets";

/// When librdkafka gives up a record of an idempotent producer, it begins a new epoch, in which no broker can tell that what is sent
/// again is in the log already. So that a record that is there twice is always the brokers' doing, it does not give up here.
const IDEMPOTENT_PATIENCE: Duration = Duration::from_secs(120);

/// The load and what it must amount to.
#[derive(Clone, Debug)]
pub struct Profile {
    pub partitions: i32,
    pub members: u32,
    /// "all", or for a run that must be found out, "1"; then there is no idempotent producer.
    pub acks: &'static str,
    /// Between two records of one producer.
    pub pause: Duration,
    /// After which a producer gives a record up; the idempotent one not before [`IDEMPOTENT_PATIENCE`].
    pub patience: Duration,
    pub cluster: Vec<(&'static str, &'static str)>,
    /// For the clients, on top of what they need.
    pub clients: Vec<(&'static str, &'static str)>,
}

impl Default for Profile {
    fn default() -> Profile {
        let (pause, patience) = (Duration::from_millis(4), Duration::from_secs(10));
        Profile { partitions: 3, members: 2, acks: "all", pause, patience, cluster: Vec::new(), clients: Vec::new() }
    }
}

pub struct Bench {
    pub cluster: Cluster,
    net: Option<Net>,
    disks: Vec<Disk>,
    pub topic: String,
    pub history: Arc<Recorder>,
    profile: Profile,
    group: String,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    watching: Arc<AtomicBool>,
    watchers: Vec<JoinHandle<()>>,
    recoveries: Vec<Duration>,
}

impl Bench {
    pub fn start(profile: Profile) -> Bench {
        let cluster = Cluster::start(&profile.cluster);
        Bench::over(cluster, None, Vec::new(), profile)
    }

    /// On a network that can be cut.
    pub fn start_in(net: Net, profile: Profile) -> Bench {
        let cluster = Cluster::start_in(&net, &profile.cluster);
        Bench::over(cluster, Some(net), Vec::new(), profile)
    }

    /// Each node on a disk of its own; or why there can be none.
    pub fn start_on_disks(mib: u64, profile: Profile) -> Result<Bench, String> {
        let disks = (0..3).map(|_| Disk::new(mib)).collect::<Result<Vec<_>, _>>()?;
        let cluster = Cluster::start_on(&disks, &profile.cluster);
        Ok(Bench::over(cluster, None, disks, profile))
    }

    /// Puts load on a cluster that serves.
    fn over(cluster: Cluster, net: Option<Net>, disks: Vec<Disk>, profile: Profile) -> Bench {
        let topic = create_replicated(
            &cluster,
            "faults",
            profile.partitions,
            3,
            &[("min.insync.replicas", "2"), ("retention.ms", "-1"), ("retention.bytes", "-1")],
        );
        cluster.await_full_isr(&topic);
        let history = Arc::new(Recorder::with_file(&history_path(&topic)));
        let (over, watching) = (Arc::default(), Arc::default());
        let group = unique("group");
        let (threads, watchers, recoveries) = (Vec::new(), Vec::new(), Vec::new());
        let mut bench = Bench {
            cluster,
            net,
            disks,
            topic,
            history,
            profile,
            group,
            over,
            threads,
            watching,
            watchers,
            recoveries,
        };
        bench.start_clients();
        bench
    }

    fn start_clients(&mut self) {
        let quick = [
            ("reconnect.backoff.ms", "20"),
            ("reconnect.backoff.max.ms", "200"),
            ("retry.backoff.ms", "20"),
            ("retry.backoff.max.ms", "200"),
        ];
        let quick: Vec<_> = quick.into_iter().chain(self.profile.clients.clone()).collect();
        let quick = config(&self.cluster, &quick);
        let producers = [(1, true, "0"), (2, false, "5")];
        for (process, idempotent, linger) in producers.into_iter().skip(usize::from(self.profile.acks != "all")) {
            let mut config = quick.clone();
            let least = if idempotent { IDEMPOTENT_PATIENCE } else { Duration::ZERO };
            let patience = self.profile.patience.max(least).as_millis().to_string();
            config.set("acks", self.profile.acks).set("linger.ms", linger).set("delivery.timeout.ms", patience);
            let (topic, partitions, pause) = (self.topic.clone(), self.profile.partitions, self.profile.pause);
            let sending = producers::Sending { process, idempotent, topic, partitions, pause };
            self.threads.push(producers::start(config, sending, self.history.clone(), self.over.clone()));
        }
        let mut reading = quick;
        reading.set("enable.auto.commit", "false").set("auto.offset.reset", "earliest");
        let mut strict = reading.clone();
        strict.set("group.id", "none");
        let what = (self.topic.clone(), self.profile.partitions);
        self.threads.push(readers::start(strict, 10, what, self.history.clone(), self.over.clone()));
        reading.set("group.id", &self.group).set("session.timeout.ms", "6000").set("heartbeat.interval.ms", "500");
        for process in (20..).take(self.profile.members as usize) {
            let (history, over) = (self.history.clone(), self.over.clone());
            self.threads.push(group::start(&reading, process, self.topic.clone(), history, over));
        }
        for id in self.cluster.ids() {
            let address = self.cluster.node(id).socket_address();
            let (topic, history, over) = (self.topic.clone(), self.history.clone(), self.watching.clone());
            self.watchers.push(monitor::start(id, address, topic, history, over));
        }
    }

    /// A producer that comes now and sets nothing that it need not. Returns when one of its records is acknowledged in every partition.
    #[track_caller]
    pub fn newcomer(&mut self, process: u32) {
        let (topic, partitions, pause) = (self.topic.clone(), self.profile.partitions, self.profile.pause);
        let sending = producers::Sending { process, idempotent: true, topic, partitions, pause };
        let (history, over) = (Arc::clone(&self.history), Arc::clone(&self.over));
        self.threads.push(producers::start(config(&self.cluster, &[]), sending, history, over));
        until("a newcomer's records", RECOVERY_MAX, || {
            (self.history.acknowledged_by(process) == (0..partitions).collect()).then_some(())
        });
    }

    /// Waits while the load goes on.
    pub fn run_for(&self, time: Duration) {
        std::thread::sleep(time);
    }

    /// What the nodes that run say, asked one after the other until one knows.
    #[track_caller]
    fn picture(&self, wanted: impl Fn(&Picture) -> Option<i32>) -> i32 {
        until("a node that knows", CALL_MAX, || {
            self.cluster.ids().filter(|id| self.cluster.node(*id).is_up()).find_map(|id| {
                let picture = Probe::new(self.cluster.node(id).socket_address()).picture(&self.topic)?;
                wanted(&picture)
            })
        })
    }

    pub fn leader(&self, partition: i32) -> i32 {
        self.picture(|picture| {
            picture.partitions.iter().find(|one| one.index == partition).map(|one| one.leader).filter(|id| *id > 0)
        })
    }

    /// Waits until another node says that this one leads nothing, and others lead everything.
    #[track_caller]
    pub(super) fn await_other_leaders(&self, node: i32) {
        let other = self.cluster.ids().find(|id| *id != node).expect("another node");
        let address = self.cluster.node(other).socket_address();
        until("other leaders", RECOVERY_MAX, || {
            let picture = Probe::new(address).picture(&self.topic)?;
            picture.partitions.iter().all(|one| one.leader > 0 && one.leader != node).then_some(())
        });
    }

    pub fn controller(&self) -> i32 {
        self.picture(|picture| Some(picture.controller).filter(|id| *id > 0))
    }

    pub fn coordinator(&self) -> i32 {
        let node = |id| Probe::new(self.cluster.node(id).socket_address());
        until("a coordinator", CALL_MAX, || self.cluster.ids().find_map(|id| node(id).coordinator(&self.group)))
    }

    /// One fault from its start until every replica is in sync again.
    pub fn inflict(&mut self, fault: Fault, away: Duration) {
        match fault {
            Fault::KillLeader(partition) => self.kill("KillLeader", vec![self.leader(partition)], away),
            Fault::KillFollower(partition) => {
                let leader = self.leader(partition);
                let follower = self.cluster.ids().find(|id| *id != leader).expect("another node");
                self.kill("KillFollower", vec![follower], away);
            }
            Fault::KillController => self.kill("KillController", vec![self.controller()], away),
            Fault::KillCoordinator => self.kill("KillCoordinator", vec![self.coordinator()], away),
            Fault::KillAll => self.kill("KillAll", self.cluster.ids().collect(), away),
            Fault::PauseLeader(partition, time) => self.pause(self.leader(partition), time, false),
            Fault::RollingRestart => self.cluster.ids().for_each(|id| self.restart(id)),
        }
    }

    fn kill(&mut self, name: &str, nodes: Vec<i32>, away: Duration) {
        for node in &nodes {
            self.history.note(0, Action::Fault { name: name.into(), node: *node });
            self.cluster.node_mut(*node).kill();
        }
        self.run_for(away);
        let began = Instant::now();
        nodes.iter().for_each(|node| self.cluster.node_mut(*node).spawn());
        self.recover(name, nodes[0], began);
    }

    /// The leader dies with what its followers, which stand still, have not got.
    pub fn kill_ahead_of_followers(&mut self, partition: i32, time: Duration) {
        let leader = self.leader(partition);
        let followers: Vec<i32> = self.cluster.ids().filter(|id| *id != leader).collect();
        self.history.note(0, Action::Fault { name: "KillAhead".into(), node: leader });
        followers.iter().for_each(|id| self.cluster.node(*id).pause());
        self.run_for(time);
        self.cluster.node_mut(leader).kill();
        followers.iter().for_each(|id| self.cluster.node(*id).resume());
        // Another leads before the old one is back.
        self.run_for(Duration::from_secs(3));
        let began = Instant::now();
        self.cluster.node_mut(leader).spawn();
        self.recover("KillAhead", leader, began);
    }

    /// Stands still for this time, and if that is longer than nodes wait for one another, until others lead.
    pub fn pause(&mut self, node: i32, time: Duration, moves: bool) {
        self.history.note(0, Action::Fault { name: "Pause".into(), node });
        self.cluster.node(node).pause();
        self.run_for(time);
        if moves {
            self.await_other_leaders(node);
        }
        let began = Instant::now();
        self.cluster.node(node).resume();
        self.recover("Pause", node, began);
    }

    /// Stops a node as an operator does and starts it again.
    pub fn restart(&mut self, node: i32) {
        self.history.note(0, Action::Fault { name: "Restart".into(), node });
        self.cluster.node_mut(node).stop();
        let began = Instant::now();
        self.cluster.node_mut(node).spawn();
        self.recover("Restart", node, began);
    }

    /// Cuts these directed pairs for a while, and if the node that it is about cannot lead meanwhile, until others do.
    pub fn cut(&mut self, name: &str, node: i32, pairs: &[(i32, i32)], (time, moves): (Duration, bool)) {
        self.cut_while(name, node, pairs, |bench| {
            bench.run_for(time);
            if moves {
                bench.await_other_leaders(node);
            }
        });
    }

    /// Cuts these directed pairs for as long as something takes.
    pub fn cut_while(&mut self, name: &str, node: i32, pairs: &[(i32, i32)], meanwhile: impl FnOnce(&mut Bench)) {
        self.net.as_ref().expect("a network that can be cut").cut(pairs);
        // Only now, or what is acknowledged meanwhile would pass for acknowledged after it.
        self.history.note(0, Action::Fault { name: name.into(), node });
        meanwhile(self);
        let began = Instant::now();
        self.net.as_ref().expect("a network that can be cut").heal();
        self.recover(name, node, began);
    }

    /// Cuts one of these sets after the other, round and round, without waiting for anything between.
    pub fn flap(&mut self, name: &str, sets: &[Vec<(i32, i32)>], each: Duration, rounds: usize) {
        for pairs in sets.iter().cycle().take(sets.len() * rounds) {
            self.history.note(0, Action::Fault { name: name.into(), node: pairs[0].0 });
            let net = self.net.as_ref().expect("a network that can be cut");
            net.cut(pairs);
            self.run_for(each);
            net.heal();
        }
        self.recover(name, 0, Instant::now());
    }

    pub(super) fn disk(&self, node: i32) -> &Disk {
        let at = usize::try_from(node - 1).expect("a node id");
        self.disks.get(at).expect("nodes on disks of their own")
    }

    pub(super) fn recover(&mut self, name: &str, node: i32, began: Instant) {
        self.cluster.await_ready();
        self.await_full_isr();
        let took = began.elapsed();
        assert!(took < RECOVERY_MAX, "full ISR only {took:?} after the start of node {node}");
        self.recoveries.push(took);
        self.history.note(0, Action::Healed { name: name.into(), node });
    }

    /// Every node that runs must say so, of our topic and of the groups' offsets.
    #[track_caller]
    pub fn await_full_isr(&self) {
        for topic in [self.topic.as_str(), OFFSETS] {
            let full = |id| {
                let picture = Probe::new(self.cluster.node(id).socket_address()).picture(topic)?;
                let whole = picture.partitions.iter().all(|one| one.leader > 0 && one.isr.len() == one.replicas.len());
                (whole && !picture.partitions.is_empty()).then_some(())
            };
            let what = format!("every replica of {topic} in sync by what every node says");
            until(&what, RECOVERY_MAX, || self.cluster.ids().all(|id| full(id).is_some()).then_some(()));
        }
    }

    /// Ends the load, reads everything and gives the verdict; panics with the findings.
    #[track_caller]
    pub fn finish(mut self) -> Report {
        let (report, violations) = self.verdict();
        let path = self.history.path().unwrap_or(Path::new("")).to_path_buf();
        if !violations.is_empty() {
            let first: Vec<String> = violations.iter().take(20).map(ToString::to_string).collect();
            let kept = self.keep_logs(&path);
            let (count, path) = (violations.len(), path.display());
            panic!("{count} violations, {path} in {kept}:\n{}\n{report}", first.join("\n"));
        }
        self.assert_quiet_logs(&path);
        report
    }

    /// Ends the load, reads everything and checks it.
    #[track_caller]
    pub fn verdict(&mut self) -> (Report, Vec<Violation>) {
        self.await_full_isr();
        self.await_readers();
        self.over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("a client ends well"));
        self.read_everything();
        self.watching.store(true, Ordering::Relaxed);
        self.watchers.drain(..).for_each(|thread| thread.join().expect("a monitor ends well"));
        let events = self.history.events();
        let mut report = Report::of(&events);
        report.recoveries = std::mem::take(&mut self.recoveries);
        report.recoveries.sort_unstable();
        (report, check(&events))
    }

    /// When all is well again, the strict reader and the group must get to where the log ended at that moment.
    #[track_caller]
    fn await_readers(&self) {
        let consumer: BaseConsumer = config(&self.cluster, &[]).create().expect("a consumer");
        for partition in 0..self.profile.partitions {
            let (_, end) = consumer.fetch_watermarks(&self.topic, partition, CALL_MAX).expect("watermarks");
            for by in [By::Strict, By::Group] {
                let what = format!("{by:?} readers get to {end} of partition {partition} after all is healed");
                until(&what, RECOVERY_MAX, || (self.history.reached(by, partition) + 1 >= end).then_some(()));
            }
        }
    }

    #[track_caller]
    fn read_everything(&self) {
        let mut reading = config(&self.cluster, &[("enable.auto.commit", "false"), ("group.id", &self.group)]);
        reading.set("auto.offset.reset", "error");
        let consumer: BaseConsumer = reading.create().expect("a consumer");
        let partitions: Vec<i32> = (0..self.profile.partitions).collect();
        let ask = || group::ask(&consumer, 30, &self.topic, &partitions, &self.history).then_some(());
        until("the committed offsets", RECOVERY_MAX, ask);
        readers::read_all(&consumer, 31, &self.topic, self.profile.partitions, &self.history);
        let ends: BTreeMap<i32, i64> = partitions
            .iter()
            .map(|one| (*one, consumer.fetch_watermarks(&self.topic, *one, CALL_MAX).expect("watermarks").1))
            .collect();
        for id in self.cluster.ids() {
            let address = self.cluster.node(id).socket_address();
            if !monitor::read_copy(id, address, &self.topic, &ends, &self.history) {
                say(&format!("SKIPPED: node {id} does not serve what it does not lead, its copy was not compared"));
            }
        }
    }

    /// No node may have panicked; errors are shown.
    #[track_caller]
    fn assert_quiet_logs(&self, path: &Path) {
        for id in self.cluster.ids() {
            let log = self.cluster.node(id).log();
            let panics: Vec<&str> = log.lines().filter(|line| line.contains("panicked")).collect();
            if !panics.is_empty() {
                panic!("node {id} panicked, logs in {}: {panics:?}", self.keep_logs(path));
            }
            for line in log.lines().filter(|line| line.contains("ERROR")).take(5) {
                say(&format!("node {id}: {line}"));
            }
        }
    }

    /// Copies the nodes' logs beside the history.
    fn keep_logs(&self, path: &Path) -> String {
        for id in self.cluster.ids() {
            let _ = std::fs::write(path.with_extension(format!("node{id}.log")), self.cluster.node(id).log());
        }
        path.parent().unwrap_or(path).display().to_string()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.watching.store(true, Ordering::Relaxed);
        let path = history_path(&self.topic);
        if !std::thread::panicking() {
            let _ = std::fs::remove_file(path);
        } else {
            let kept = self.keep_logs(&path);
            say(&format!("the history and the nodes' logs are in {kept}: {}", path.display()));
        }
    }
}

fn history_path(topic: &str) -> PathBuf {
    let directory = std::env::var_os("BARNABAS_FAULT_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let _ = std::fs::create_dir_all(&directory);
    directory.join(format!("barnabas-{topic}.history"))
}

/// A line for whoever runs the tests.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
