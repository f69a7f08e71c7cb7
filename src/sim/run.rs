//! One run: a cluster comes up, clients work while things go wrong, everything is mended, the cluster has to be whole again in bounded
//! time, and then every log is held against what the clients know.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::check::logs::Replica;
use super::check::observer::Observer;
use super::client::admin::Admin;
use super::client::committer::Committer;
use super::client::member::{Board, Member};
use super::client::producer::Producer;
use super::client::reader::Reader;
use super::client::{Client, Phase};
use super::cluster::{Cluster, NAMES, NODES, rack};
use super::dice::Dice;
use super::faults::Faults;
use super::history::{History, Place};
use super::process::Stage;
use super::scripts::{Scene, Script, Stuck};
use crate::base::rules::Rule;
use crate::host::task;

/// How long bytes are under way on a healthy network.
pub const LATENCY: Range<Duration> = Duration::from_micros(50)..Duration::from_millis(2);

/// Until a new cluster, or one that was mended, serves and is whole (G5).
const WHOLE_MAX: Duration = Duration::from_secs(60);

/// Until producers have got through what was open, once all is mended.
const FINISH_MAX: Duration = Duration::from_secs(60);

/// The topics that are written to, with their partitions.
const TOPICS: &[(&str, i32)] = &[("alpha", 2), ("beta", 1)];

/// Producers, in order: whether idempotent, and where to.
const PRODUCERS: &[(bool, &str, i32)] =
    &[(true, "alpha", 0), (true, "alpha", 1), (true, "beta", 0), (false, "alpha", 0), (false, "beta", 0)];

const GROUPS: &[&str] = &["group-a", "group-b"];

#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub seed: u64,
    /// A history that is told step by step, in place of what chance would have.
    pub script: Option<Script>,
    /// A protection that is switched off.
    pub without: Option<Rule>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub violations: Vec<String>,
    pub counts: BTreeMap<String, u64>,
    pub trace: String,
    pub simulated: Duration,
}

/// Runs a seed on this thread.
pub fn run(setup: Setup) -> Report {
    if let Some(rule) = setup.without {
        crate::base::rules::switch_off(rule);
    }
    task::block_inline();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    // The world begins inside: outside, the clock is the machine's.
    let play = async move { World::new(setup).play().await };
    runtime.block_on(LocalSet::new().run_until(Box::pin(play)))
}

/// Settings of every node: some always, some as the seed has them.
fn settings(dice: &Dice, min_in_sync: u64, script: Option<Script>) -> Vec<String> {
    let told = script.map(Script::settings).unwrap_or_default();
    let pick = |name: &str, values: &[&str]| {
        let picked = *dice.pick(values);
        let told = told.iter().find(|(told, _)| *told == name);
        format!("{name}={}", told.map_or(picked, |(_, value)| value))
    };
    vec![
        "auto.create.topics.enable=false".to_owned(),
        "offsets.topic.num.partitions=2".to_owned(),
        "group.initial.rebalance.delay.ms=0".to_owned(),
        format!("min.insync.replicas={min_in_sync}"),
        pick("replica.lag.time.max.ms", &["1500", "4000", "10000"]),
        pick("broker.session.timeout.ms", &["2500", "5000"]),
        pick("log.flush.offset.checkpoint.interval.ms", &["700", "5000", "60000"]),
        pick("replica.high.watermark.checkpoint.interval.ms", &["500", "5000"]),
        pick("flush.policy", &["sync"]),
    ]
}

struct World {
    cluster: Rc<Cluster>,
    history: Rc<History>,
    dice: Dice,
    phase: watch::Sender<Phase>,
    made: Rc<RefCell<Vec<String>>>,
    commits: Rc<Cell<u64>>,
    seed: u64,
    script: Option<Script>,
    clients: Cell<u8>,
}

impl World {
    fn new(Setup { seed, script, .. }: Setup) -> World {
        let dice = Dice::new(seed, 1_000);
        let drawn = if dice.one_in(4) { 1 } else { 2 };
        let min_in_sync = script.map_or(drawn, Script::min_in_sync);
        let history = Rc::new(History::new(min_in_sync > 1));
        let cluster = Rc::new(Cluster::new(seed, settings(&dice, min_in_sync, script), history.clone()));
        let (made, commits) = (Rc::default(), Rc::default());
        let phase = watch::Sender::new(Phase::Work);
        World { cluster, history, dice, phase, made, commits, seed, script, clients: Cell::new(0) }
    }

    async fn play(self) -> Report {
        self.cluster.net.set_latency(LATENCY);
        for at in 0..NODES {
            self.cluster.start(at);
        }
        let observer = spawn_local(Observer::new(self.cluster.clone()).run());
        if self.becomes("serving for the first time", WHOLE_MAX, || self.all_serve()).await {
            self.make_topics().await;
            self.go_through_it().await;
        }
        observer.abort();
        self.report()
    }

    fn client(&self, name: &str) -> Client {
        let number = self.clients.replace(self.clients.get() + 1);
        let (net, ip) = self.cluster.client(number);
        Client {
            name: name.to_owned(),
            net,
            ip,
            dice: Dice::new(self.seed, 2_000 + u64::from(number)),
            history: self.history.clone(),
            phase: self.phase.subscribe(),
        }
    }

    fn admin(&self, topics: u32) -> Admin {
        Admin { client: self.client("admin"), made: self.made.clone(), topics }
    }

    async fn make_topics(&self) {
        let admin = self.admin(0);
        for (name, partitions) in TOPICS {
            let drawn = *self.dice.pick(&["1500", "20000", "1073741824"]);
            // A segment that is closed is synced, and scripts are about what is not.
            let segment_bytes = if self.script.is_some() { "1073741824" } else { drawn };
            admin.make(name, *partitions, &[("internal.segment.bytes", segment_bytes)]).await;
        }
    }

    async fn go_through_it(&self) {
        let mut ips = Vec::new();
        let mut producers = Vec::new();
        for (number, (idempotent, topic, partition)) in (0..).zip(PRODUCERS) {
            let client = self.client(&format!("producer-{number}"));
            ips.push(client.ip);
            let place = Place { topic: (*topic).to_owned(), partition: *partition };
            producers.push(spawn_local(Producer { client, number, place, idempotent: *idempotent }.run()));
        }
        let others = self.start_others(&mut ips);
        let dice = Dice::new(self.seed, 3_000);
        let faults = Rc::new(Faults { cluster: self.cluster.clone(), dice, clients: ips });
        let supervisor = spawn_local(supervise(faults.clone()));
        match self.script {
            Some(script) => self.play_script(script, &faults.clients).await,
            None => faults.run(self.history.elapsed() + self.dice.ms(10_000..40_000)).await,
        }
        self.cluster.heal();
        self.cluster.net.set_latency(LATENCY);
        for at in 0..NODES {
            self.cluster.start(at);
        }
        self.recover(producers).await;
        self.phase.send_replace(Phase::Leave);
        for other in others {
            other.await.unwrap();
        }
        self.becomes("alike on every node", WHOLE_MAX, || self.replicas_are_alike()).await;
        supervisor.abort();
        self.look_at_logs();
        self.look_at_topics();
    }

    async fn play_script(&self, script: Script, clients: &[IpAddr]) {
        let scene = Scene {
            cluster: self.cluster.clone(),
            history: self.history.clone(),
            admin: self.client("script"),
            clients: clients.to_vec(),
            place: Place { topic: "beta".to_owned(), partition: 0 },
        };
        if let Err(Stuck(what)) = script.play(&scene).await {
            self.history.violated(format!("script: the cluster never came to where {what}"));
        }
    }

    fn start_others(&self, ips: &mut Vec<IpAddr>) -> Vec<JoinHandle<()>> {
        let mut tasks = Vec::new();
        for place in places() {
            let client = self.client(&format!("reader-{place}"));
            ips.push(client.ip);
            tasks.push(spawn_local(Reader { client, place: place.clone(), rack: None }.run()));
            let client = self.client(&format!("near-reader-{place}"));
            ips.push(client.ip);
            let rack = Some(rack(self.dice.index(NODES)));
            tasks.push(spawn_local(Reader { client, place, rack }.run()));
        }
        for group in GROUPS {
            let client = self.client(group);
            ips.push(client.ip);
            let place = places()[0].clone();
            let committer = Committer { client, group: (*group).to_owned(), place, commits: self.commits.clone() };
            tasks.push(spawn_local(committer.run()));
        }
        let board = Rc::new(Board::new(self.commits.clone()));
        for number in 0..2 {
            let client = self.client(&format!("member-{number}"));
            ips.push(client.ip);
            let member = Member { client, group: "workers".to_owned(), places: places(), board: board.clone() };
            tasks.push(spawn_local(member.run()));
        }
        tasks.push(spawn_local(self.admin(4).run()));
        tasks
    }

    /// Everything is mended: the cluster has to be whole, and everybody has to get on.
    async fn recover(&self, producers: Vec<JoinHandle<()>>) {
        self.becomes("whole again", WHOLE_MAX, || self.all_serve() && self.is_in_sync()).await;
        let (acked, commits) = (self.history.counted("acked batches"), self.commits.get());
        let get_on = || self.history.counted("acked batches") > acked && self.commits.get() > commits;
        self.becomes("written to again", WHOLE_MAX, get_on).await;
        self.phase.send_replace(Phase::Finish);
        let finished = || producers.iter().all(JoinHandle::is_finished);
        self.becomes("through with what producers had open", FINISH_MAX, finished).await;
    }

    /// Waits until something holds; a violation when it does not in time.
    async fn becomes(&self, what: &str, longest: Duration, holds: impl Fn() -> bool) -> bool {
        let began = self.history.elapsed();
        while !holds() {
            if self.history.elapsed() - began > longest {
                self.history
                    .violated(format!("liveness: the cluster is not {what} within {longest:?}: {}", self.state()));
                return false;
            }
            task::sleep(Duration::from_millis(50)).await;
        }
        self.history.note(&format!("the cluster is {what}"));
        true
    }

    fn all_serve(&self) -> bool {
        (0..NODES).all(|at| self.cluster.stage(at) == Some(Stage::Serving))
    }

    fn is_in_sync(&self) -> bool {
        (0..NODES).all(|at| {
            let Some(broker) = self.cluster.broker(at) else { return false };
            let image = broker.image();
            (1..).take(NODES).all(|id| image.is_active(id))
                && image.partitions().all(|(_, _, state)| state.has_leader() && state.isr.len() == state.replicas.len())
        })
    }

    fn replicas_are_alike(&self) -> bool {
        places().iter().all(|place| {
            let replica = |at| {
                let broker = self.cluster.broker(at)?;
                let partition = broker.partitions.partition(&place.topic, place.partition)?;
                let end = partition.view().ok()?.log_end_offset;
                Some((end, partition.high_watermark()))
            };
            let first = replica(0);
            first.is_some_and(|(end, high_watermark)| end == high_watermark)
                && (1..NODES).all(|at| replica(at) == first)
        })
    }

    /// For a violation of liveness.
    fn state(&self) -> String {
        let mut lines = Vec::new();
        for (at, name) in NAMES.iter().enumerate() {
            let stage = self.cluster.stage(at);
            let Some(broker) = self.cluster.broker(at) else {
                lines.push(format!("{name} {stage:?}"));
                continue;
            };
            let image = broker.image();
            let active: Vec<_> = (1..4).filter(|id| image.is_active(*id)).collect();
            let mut behind = Vec::new();
            for (topic, index, state) in image.partitions() {
                let replica = broker.partitions.partition(&topic.name, index);
                let found = replica.map(|replica| {
                    (replica.role(), replica.high_watermark(), replica.view_if_open().map(|view| view.log_end_offset))
                });
                if state.isr.len() < NODES || places().iter().any(|place| place.topic == *topic.name) {
                    behind.push(format!(
                        "{}-{index} leader {} epoch {} isr {:?} {found:?}",
                        topic.name, state.leader, state.leader_epoch, state.isr
                    ));
                }
            }
            let leads = broker.controller.quorum().leadership().borrow().clone();
            let offset = image.offset;
            lines.push(format!("{name} {stage:?} image {offset} active {active:?} quorum {leads:?} {behind:?}"));
        }
        lines.join("; ")
    }

    fn look_at_logs(&self) {
        for place in places() {
            let mut replicas = Vec::new();
            for (at, broker) in self.cluster.brokers() {
                let Some(partition) = broker.partitions.partition(&place.topic, place.partition) else {
                    self.history.violated(format!("{place} is not on {}", NAMES[at]));
                    continue;
                };
                match Replica::of(&partition) {
                    Ok(replica) => replicas.push((NAMES[at], replica)),
                    Err(error) => self.history.violated(format!("{place} cannot be read on {}: {error}", NAMES[at])),
                }
            }
            let is_idempotent = |number: u32| PRODUCERS[number as usize].0;
            for (name, replica) in &replicas {
                self.history.hold_against(&place, &replica.records(), is_idempotent, name);
            }
            if let Some(((first, one), rest)) = replicas.split_first() {
                for (other, another) in rest.iter().filter(|(_, other)| other.bytes != one.bytes) {
                    let ends = (one.end, one.high_watermark, another.end, another.high_watermark);
                    self.history
                        .violated(format!("log-matching: {place} differs between {first} and {other}: {ends:?}"));
                }
            }
        }
    }

    fn look_at_topics(&self) {
        for (at, broker) in self.cluster.brokers() {
            let image = broker.image();
            for name in self.made.borrow().iter().filter(|name| image.topic(name).is_none()) {
                self.history.violated(format!("topic {name} was made and is not known on {}", NAMES[at]));
            }
        }
    }

    fn report(&self) -> Report {
        let (trace, notes) = self.history.trace();
        let mut counts: BTreeMap<String, u64> =
            self.history.counts().into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        counts.insert("acked records".to_owned(), self.history.acked_count() as u64);
        let failed = self.cluster.failed_syncs();
        if failed > 0 {
            counts.insert("failed syncs".to_owned(), failed);
        }
        Report {
            violations: self.history.violations(),
            counts,
            trace: format!("{trace:016x} {notes} {:016x}", self.cluster.net.trace()),
            simulated: self.history.elapsed(),
        }
    }
}

fn places() -> Vec<Place> {
    let of = |(topic, partitions): &(&str, i32)| {
        (0..*partitions).map(|partition| Place { topic: (*topic).to_owned(), partition }).collect::<Vec<_>>()
    };
    TOPICS.iter().flat_map(of).collect()
}

/// Starts again what ended by itself.
async fn supervise(faults: Rc<Faults>) {
    loop {
        task::sleep(Duration::from_millis(700)).await;
        faults.raise_the_dead().await;
    }
}
