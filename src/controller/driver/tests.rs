//! Facts about the driver over a quorum of one voter, on a simulated machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::*;
use crate::base::{ErrorCode, NodeAddress};
use crate::controller::decide::alter_partition::{AlterPartition, NewIsr};
use crate::controller::decide::create_topics::NewTopic;
use crate::controller::decide::features::supported_features;
use crate::controller::decide::heartbeat::{Heartbeat, HeartbeatReply};
use crate::controller::decide::registration::Registration;
use crate::host::sim::{SimHost, SimKv};
use crate::host::{Disk, KeyValueStore, task};
use crate::metadata::BrokerRegistration;
use crate::quorum::{NoTransport, QuorumOptions, QuorumTiming};

/// A node that is the controller.
struct Machine {
    sim: SimHost,
    controller: Controller,
}

impl Machine {
    async fn new() -> Machine {
        let sim = SimHost::new(7);
        sim.disk.create_dir_all(Path::new("/data")).unwrap();
        let kv: Arc<SimKv> = Arc::default();
        let options = QuorumOptions {
            node_id: 1,
            directory_id: Uuid::from_u128(7),
            must_exist: false,
            store: Arc::new(move |path: &Path| Ok(kv.open(path)? as Arc<dyn KeyValueStore>)),
            voters: Vec::new(),
            my_address: NodeAddress::new("localhost", 9093),
            transport: Arc::new(NoTransport::default()),
            timing: QuorumTiming::default(),
        };
        let quorum = Quorum::open(&sim.host(), Path::new("/data"), options).await.unwrap();
        quorum.leadership().wait_for(|leadership| leadership.is_me).await.unwrap();
        let options = ControllerOptions {
            node_id: 1,
            settings: ControllerSettings::usual(),
            internal_topics: Vec::new(),
            defaults: TopicDefaults { partitions: 1, replication_factor: 1 },
            static_properties: Arc::new(BTreeMap::new()),
        };
        Machine { controller: Controller::new(sim.host(), quorum, options), sim }
    }

    /// Three brokers that serve.
    async fn with_three() -> Machine {
        let machine = Machine::new().await;
        for id in 1..=3 {
            let epoch = machine.register(id, 1).await.unwrap();
            assert!(!machine.beat(id, epoch).await.unwrap().fenced);
        }
        machine
    }

    async fn register(&self, id: BrokerId, incarnation: u128) -> Result<i64, ErrorCode> {
        let broker = BrokerRegistration {
            id,
            incarnation: Uuid::from_u128(incarnation),
            directories: vec![Uuid::from_u128(1000 + u128::from(id.unsigned_abs()))],
            features: supported_features(),
            ..BrokerRegistration::default()
        };
        let asked = Registration {
            cluster_id: String::new(),
            fresh_cluster_id: String::new(),
            broker,
            previous_epoch: None,
            remembered: Vec::new(),
        };
        self.controller.register(asked).await.unwrap().map_err(|refusal| refusal.code)
    }

    async fn beat(&self, id: BrokerId, epoch: i64) -> Result<HeartbeatReply, ErrorCode> {
        self.beat_with(id, epoch, false).await
    }

    async fn beat_with(&self, id: BrokerId, epoch: i64, want_shut_down: bool) -> Result<HeartbeatReply, ErrorCode> {
        let beat = Heartbeat {
            id,
            epoch,
            metadata_offset: self.image().offset,
            want_fence: false,
            want_shut_down,
            offline_directories: vec![],
        };
        self.controller.heartbeat(beat).await.unwrap()
    }

    async fn make_topic(&self, replicas: &[BrokerId]) {
        let topic = NewTopic { assignments: vec![(0, replicas.to_vec())], ..NewTopic::with_defaults("t") };
        let outcomes = self.controller.create_topics(vec![topic], false).await.unwrap();
        assert!(outcomes[0].result.is_ok(), "{outcomes:?}");
    }

    fn image(&self) -> Arc<Image> {
        self.controller.quorum().image()
    }

    fn epoch(&self, id: BrokerId) -> i64 {
        self.image().broker(id).unwrap().epoch
    }

    fn leader(&self) -> BrokerId {
        self.image().partition("t", 0).unwrap().leader
    }

    /// Until every look at a broker is over and what followed from it is kept.
    async fn looked(&self) {
        while !self.controller.shared.looking.lock().is_empty() {
            task::sleep(Duration::from_millis(1)).await;
        }
        let (_, _) = self.controller.change(|_| Decision::unchanged(())).await.unwrap();
    }
}

/// Sees the same everywhere.
struct Seeing(Liveness);

impl BrokerProbe for Seeing {
    fn look(&self, _: Arc<BrokerRegistration>) -> BoxFuture<'static, Liveness> {
        let seen = self.0;
        async move { seen }.boxed()
    }
}

#[tokio::test]
async fn brokers_come_and_a_topic_lies_on_them() {
    let machine = Machine::with_three().await;
    assert!(!machine.image().cluster_id.is_empty());
    machine.make_topic(&[2, 3, 1]).await;
    assert_eq!((machine.leader(), machine.image().partition("t", 0).unwrap().isr.len()), (2, 3));
    assert_eq!(machine.image().live_brokers().count(), 3);
}

#[tokio::test]
async fn whoever_is_not_heard_is_fenced_when_his_session_ends_and_heartbeats_bring_him_back() {
    let machine = Machine::with_three().await;
    machine.make_topic(&[2, 3, 1]).await;
    let mut due = machine.controller.take_over();
    for (after_ms, is_live) in [(2_000, true), (499, true), (1, false)] {
        machine.sim.clock.advance_ms(after_ms);
        machine.beat(3, machine.epoch(3)).await.unwrap();
        machine.controller.tick(&mut due).await;
        assert_eq!(machine.image().is_live(2), is_live, "{after_ms}");
    }
    assert!(machine.image().is_live(1), "the controller's own broker has no session before its first heartbeat");
    assert_eq!(machine.leader(), 3);
    assert!(!machine.beat(2, machine.epoch(2)).await.unwrap().fenced);
    assert!(machine.image().is_active(2));
    machine.sim.clock.advance_ms(4_999);
    machine.controller.tick(&mut due).await;
    assert!(machine.image().is_live(2));
}

#[tokio::test(start_paused = true)]
async fn a_broker_whose_connection_breaks_is_fenced_at_once_only_if_it_is_gone() {
    for (seen, is_live) in [(Liveness::Alive, true), (Liveness::Silent, true), (Liveness::Gone, false)] {
        let machine = Machine::with_three().await;
        machine.make_topic(&[2, 3, 1]).await;
        machine.controller.look_with(Arc::new(Seeing(seen)));
        machine.controller.note_connection_lost(2);
        machine.looked().await;
        while machine.image().is_live(2) != is_live {
            task::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(machine.leader(), if is_live { 2 } else { 3 }, "{seen:?}");
    }
}

#[tokio::test]
async fn a_twin_is_refused_while_the_first_one_lives() {
    let machine = Machine::with_three().await;
    assert_eq!(machine.register(2, 9).await, Err(ErrorCode::DUPLICATE_BROKER_REGISTRATION));
    machine.sim.clock.advance_ms(5_000);
    assert!(machine.register(2, 9).await.is_ok());
    assert_eq!(machine.register(2, 1).await, Err(ErrorCode::DUPLICATE_BROKER_REGISTRATION));
    machine.controller.look_with(Arc::new(Seeing(Liveness::Gone)));
    assert!(machine.register(2, 10).await.is_ok(), "a look showed that the first one is gone");
}

#[tokio::test]
async fn the_controllers_own_broker_registers_again_at_once() {
    let machine = Machine::with_three().await;
    assert!(machine.register(1, 2).await.is_ok());
    assert_eq!(machine.beat(1, 0).await, Err(ErrorCode::STALE_BROKER_EPOCH));
}

#[tokio::test]
async fn a_broker_is_relieved_before_it_stops() {
    let machine = Machine::with_three().await;
    machine.make_topic(&[2, 3, 1]).await;
    let epoch = machine.epoch(2);
    let moved = machine.beat_with(2, epoch, true).await.unwrap();
    assert!(moved.shutting_down && !moved.should_shut_down);
    assert_eq!(machine.leader(), 3);
    let unseen = machine.beat_with(2, epoch, true).await.unwrap();
    assert!(!unseen.should_shut_down, "the others have not seen it yet");
    for id in [1, 3] {
        machine.beat(id, machine.epoch(id)).await.unwrap();
    }
    assert!(machine.beat_with(2, epoch, true).await.unwrap().should_shut_down);
    assert!(!machine.image().is_live(2));
}

#[tokio::test]
async fn leaders_that_ask_together_are_answered_together() {
    let machine = Machine::with_three().await;
    machine.make_topic(&[1, 2, 3]).await;
    let topic = machine.image().topic("t").unwrap().id;
    let asking = |isr: &[BrokerId]| AlterPartition {
        broker: 1,
        broker_epoch: machine.epoch(1),
        topics: vec![(
            topic,
            vec![NewIsr {
                partition: 0,
                leader_epoch: 0,
                partition_epoch: 0,
                isr: isr.iter().map(|id| (*id, machine.epoch(*id))).collect(),
                recovering: false,
            }],
        )],
    };
    let before = machine.image().offset;
    let (first, second) = tokio::join!(
        machine.controller.alter_partition(asking(&[1, 2])),
        machine.controller.alter_partition(asking(&[1, 3]))
    );
    let outcome = |answer: Result<
        Result<crate::controller::decide::alter_partition::IsrOutcomes, ErrorCode>,
        QuorumError,
    >| { answer.unwrap().unwrap()[0].1[0].1.clone().map(|state| state.isr) };
    assert_eq!(outcome(first), Ok(vec![1, 2]));
    assert_eq!(outcome(second), Err(ErrorCode::INVALID_UPDATE_VERSION));
    assert_eq!(machine.image().offset, before + 1);
}

#[tokio::test]
async fn many_records_are_kept_in_several_proposals() {
    let machine = Machine::with_three().await;
    let names = (0..12_000).map(|number| crate::metadata::MetadataRecord::Config {
        resource: crate::metadata::ConfigResource::topic(format!("t{number}")),
        name: "k".into(),
        value: Some("v".into()),
    });
    let records: Vec<_> = names.collect();
    let before = machine.image().offset;
    let decide = move |_: &Image| Decision { records: records.clone(), reply: () };
    let ((), offset) = machine.controller.change(decide).await.unwrap();
    assert_eq!((offset, machine.image().offset), (before + 12_000, before + 12_000));
}
