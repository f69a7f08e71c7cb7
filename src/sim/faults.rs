//! What goes wrong in a run, and when: drawn from the seed, one thing after another and sometimes several at once, and never so that
//! promises could not be kept. Disks are never lost, so nothing that was synced is.

use std::rc::Rc;
use std::time::Duration;

use super::cluster::{Cluster, NAMES, NODES, PORT};
use super::dice::Dice;
use super::process::Stage;
use crate::host::sim::Crash;
use crate::host::task;

/// How long a clean stop may take before it is killed.
const STOP_MAX: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    PowerCut,
    PowerCutOfAll,
    KillAll,
    CleanRestart,
    Isolate,
    OneWay,
    CutPair,
    BreakConnections,
    SlowDisk,
    FullDisk,
    SlowNetwork,
    CutClient,
    CutData,
    SlowLink,
    Pause,
    FailedSync,
}

/// With how often each is drawn.
const FAULTS: &[(Fault, u64)] = &[
    (Fault::Kill, 8),
    (Fault::PowerCut, 8),
    (Fault::PowerCutOfAll, 1),
    (Fault::KillAll, 1),
    (Fault::CleanRestart, 3),
    (Fault::Isolate, 5),
    (Fault::OneWay, 4),
    (Fault::CutPair, 4),
    (Fault::BreakConnections, 3),
    (Fault::SlowDisk, 3),
    (Fault::FullDisk, 2),
    (Fault::SlowNetwork, 2),
    (Fault::CutClient, 2),
    (Fault::CutData, 5),
    (Fault::SlowLink, 3),
    (Fault::Pause, 4),
    (Fault::FailedSync, 2),
];

pub struct Faults {
    pub cluster: Rc<Cluster>,
    pub dice: Dice,
    pub clients: Vec<std::net::IpAddr>,
}

impl Faults {
    /// Lets things go wrong for a while; what is cut or slow then still is. What runs on by itself stays with the caller.
    pub async fn run(self: &Rc<Self>, until: Duration) {
        let mut beside = tokio::task::JoinSet::new();
        while self.cluster.history.elapsed() < until {
            task::sleep(self.dice.ms(200..3_000)).await;
            let fault = self.draw();
            self.cluster.history.count("faults");
            let faults = self.clone();
            // One beside another, now and then.
            if self.dice.one_in(3) {
                beside.spawn_local(async move { faults.strike(fault).await });
            } else {
                self.strike(fault).await;
            }
        }
        while beside.join_next().await.is_some() {}
    }

    fn draw(&self) -> Fault {
        let mut at = self.dice.below(FAULTS.iter().map(|(_, weight)| weight).sum());
        for (fault, weight) in FAULTS {
            match at.checked_sub(*weight) {
                None => return *fault,
                Some(rest) => at = rest,
            }
        }
        Fault::Kill
    }

    /// A node that runs, if any does.
    fn victim(&self) -> usize {
        self.dice.index(NODES)
    }

    fn other(&self, at: usize) -> usize {
        (at + 1 + self.dice.index(NODES - 1)) % NODES
    }

    fn power(&self) -> Crash {
        if self.dice.one_in(2) { Crash::PowerLosesAll } else { Crash::PowerLosesSome }
    }

    async fn strike(&self, fault: Fault) {
        let cluster = &self.cluster;
        let at = self.victim();
        cluster.history.note(&format!("fault {fault:?} {}", NAMES[at]));
        match fault {
            Fault::Kill => self.down(at, Crash::Process).await,
            Fault::PowerCut => self.down(at, self.power()).await,
            Fault::PowerCutOfAll => self.all_down(Some(self.power())).await,
            Fault::KillAll => self.all_down(None).await,
            Fault::CleanRestart => {
                cluster.stop(at, STOP_MAX).await;
                cluster.history.count("clean stops");
                task::sleep(self.dice.ms(10..2_000)).await;
                cluster.start(at);
            }
            Fault::Isolate => self.isolate(at).await,
            Fault::OneWay => self.cut(at, true).await,
            Fault::CutPair => self.cut(at, false).await,
            Fault::BreakConnections => {
                cluster.net.break_between(cluster.machines[at].ip, cluster.machines[self.other(at)].ip);
            }
            Fault::SlowDisk => {
                let slowest = *self.dice.pick(&[50_000, 300_000, 1_500_000]);
                cluster.set_device(at, 1_000..slowest);
                task::sleep(self.dice.ms(500..5_000)).await;
                cluster.mend_machine(at);
            }
            Fault::FullDisk => {
                cluster.fill_disk(at, self.dice.below(2_000));
                cluster.history.count("full disks");
                task::sleep(self.dice.ms(500..6_000)).await;
                cluster.mend_machine(at);
                self.raise_the_dead().await;
            }
            Fault::SlowNetwork => {
                cluster.net.set_latency(Duration::from_millis(1)..Duration::from_millis(self.dice.between(20..400)));
                task::sleep(self.dice.ms(500..4_000)).await;
                cluster.net.set_latency(super::run::LATENCY);
            }
            Fault::CutData => self.cut_data(at).await,
            Fault::SlowLink => {
                let (from, to) = (cluster.machines[at].ip, cluster.machines[self.other(at)].ip);
                let by = Duration::from_millis(*self.dice.pick(&[30, 300, 2_000]));
                cluster.net.delay_at_door(from, to, PORT, by);
                task::sleep(self.dice.ms(500..8_000)).await;
                cluster.net.hurry(from, to);
            }
            Fault::Pause => {
                cluster.history.count("pauses");
                cluster.stand_still(at);
                task::sleep(self.dice.ms(100..9_000)).await;
                cluster.go_on(at);
            }
            Fault::FailedSync => {
                cluster.fail_sync(at, self.dice.between(1..30));
                task::sleep(self.dice.ms(100..3_000)).await;
                self.raise_the_dead().await;
            }
            Fault::CutClient => {
                let client = *self.dice.pick(&self.clients);
                cluster.net.cut(client, cluster.machines[at].ip);
                cluster.net.cut(cluster.machines[at].ip, client);
                task::sleep(self.dice.ms(500..6_000)).await;
                cluster.net.heal(client, cluster.machines[at].ip);
                cluster.net.heal(cluster.machines[at].ip, client);
            }
        }
    }

    async fn down(&self, at: usize, how: Crash) {
        self.cluster.history.count("crashes");
        self.cluster.crash(at, how).await;
        if how != Crash::Process && self.dice.one_in(4) {
            self.cluster.wipe_stores(at);
        }
        task::sleep(self.dice.ms(10..7_000)).await;
        self.cluster.start(at);
    }

    async fn all_down(&self, power: Option<Crash>) {
        for at in 0..NODES {
            self.cluster.history.count("crashes");
            self.cluster.crash(at, power.unwrap_or(Crash::Process)).await;
        }
        let mut order = [0, 1, 2];
        order.rotate_left(self.dice.index(NODES));
        for at in order {
            task::sleep(self.dice.ms(10..2_000)).await;
            self.cluster.start(at);
        }
    }

    async fn isolate(&self, at: usize) {
        let (net, machines) = (&self.cluster.net, &self.cluster.machines);
        let others: Vec<_> = (0..NODES).filter(|other| *other != at).map(|other| machines[other].ip).collect();
        self.cluster.history.count("cuts");
        for other in &others {
            net.cut(machines[at].ip, *other);
            net.cut(*other, machines[at].ip);
        }
        task::sleep(self.dice.ms(500..12_000)).await;
        for other in &others {
            net.heal(machines[at].ip, *other);
            net.heal(*other, machines[at].ip);
        }
    }

    async fn cut(&self, at: usize, one_way: bool) {
        let (from, to) = (self.cluster.machines[at].ip, self.cluster.machines[self.other(at)].ip);
        self.cluster.history.count("cuts");
        self.cluster.net.cut(from, to);
        if !one_way {
            self.cluster.net.cut(to, from);
        }
        task::sleep(self.dice.ms(500..10_000)).await;
        self.cluster.net.heal(from, to);
        self.cluster.net.heal(to, from);
    }

    /// A node cannot fetch from another, or nobody from it, or it from nobody; as controllers they hear each other.
    async fn cut_data(&self, at: usize) {
        let nodes: Vec<usize> = (0..NODES).filter(|other| *other != at).collect();
        let others = if self.dice.one_in(2) { nodes } else { vec![*self.dice.pick(&nodes)] };
        let ways = self.dice.below(3);
        self.cluster.history.count("cuts");
        for other in &others {
            if ways != 1 {
                self.cluster.cut_data(at, *other);
            }
            if ways != 2 {
                self.cluster.cut_data(*other, at);
            }
        }
        task::sleep(self.dice.ms(500..12_000)).await;
        let machines = &self.cluster.machines;
        for other in others {
            self.cluster.net.heal(machines[at].ip, machines[other].ip);
            self.cluster.net.heal(machines[other].ip, machines[at].ip);
        }
    }

    /// Starts every process again that ended by itself, as an operator's service manager would.
    pub async fn raise_the_dead(&self) {
        for (at, name) in NAMES.iter().enumerate() {
            if let Some(Stage::Ended(why)) = self.cluster.stage(at) {
                let history = &self.cluster.history;
                history.note(&format!("{name} had ended: {why:?}"));
                if let Some(why) = why.filter(|_| !self.cluster.disks_had_trouble()) {
                    history.violated(format!("{name} cannot go on: {why}"));
                }
                self.cluster.crash(at, Crash::Process).await;
                self.cluster.start(at);
            }
        }
    }
}
