//! Any sequence of decisions keeps what must hold of every partition.

use proptest::prelude::*;

use super::*;
use crate::controller::decide::alter_partition::{AlterPartition, NewIsr, alter_partition};
use crate::controller::decide::elections::{Asked, balance_leaders, elect_leaders, elect_unclean};
use crate::controller::decide::features::supported_features;
use crate::controller::decide::heartbeat::{Heartbeat, Stopping, fence, heartbeat};
use crate::controller::decide::reassignments::{Reassignment, reassign};
use crate::controller::decide::registration::{Registration, register};

const BROKERS: BrokerId = 4;

#[derive(Clone, Debug)]
enum Step {
    Fence(BrokerId),
    Heartbeat {
        id: BrokerId,
        want_fence: bool,
        want_shut_down: bool,
        loses_directory: bool,
    },
    Restart {
        id: BrokerId,
        clean: bool,
    },
    /// The leader proposes the replicas whose bits are set, and itself.
    Isr {
        members: u8,
        recovering: bool,
    },
    Elect(Asked),
    Balance,
    ElectUnclean,
    Reassign {
        replicas: Option<Vec<BrokerId>>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 1..=BROKERS;
    let set = prop::sample::subsequence((1..=BROKERS).collect::<Vec<_>>(), 1..=3).prop_shuffle();
    let rarely = || prop::bool::weighted(0.1);
    prop_oneof![
        3 => id().prop_map(Step::Fence),
        6 => (id(), rarely(), rarely(), prop::bool::weighted(0.02)).prop_map(
            |(id, want_fence, want_shut_down, loses_directory)| Step::Heartbeat {
                id,
                want_fence,
                want_shut_down,
                loses_directory,
            }
        ),
        3 => (id(), any::<bool>()).prop_map(|(id, clean)| Step::Restart { id, clean }),
        6 => (any::<u8>(), rarely()).prop_map(|(members, recovering)| Step::Isr { members, recovering }),
        1 => prop_oneof![Just(Asked::Preferred), Just(Asked::Unclean)].prop_map(Step::Elect),
        1 => Just(Step::Balance),
        1 => Just(Step::ElectUnclean),
        2 => prop::option::weighted(0.8, set).prop_map(|replicas| Step::Reassign { replicas }),
    ]
}

/// The records that the step makes, and whether somebody asked for a leader that may miss records.
fn records(image: &Image, step: &Step, turn: u128) -> (Vec<MetadataRecord>, bool) {
    let now = state(image);
    let records = match step {
        Step::Fence(id) => fence(image, &RULES, *id),
        Step::Heartbeat { id, want_fence, want_shut_down, loses_directory } => {
            let broker = image.broker(*id).unwrap();
            let beat = Heartbeat {
                id: *id,
                epoch: broker.epoch,
                metadata_offset: image.offset,
                want_fence: *want_fence,
                want_shut_down: *want_shut_down,
                offline_directories: if *loses_directory { vec![directory(*id)] } else { vec![] },
            };
            heartbeat(image, &RULES, &beat, Some(Stopping { moved_at: 0, seen_by_all: 0 })).records
        }
        Step::Restart { id, clean } => {
            let known = image.broker(*id).unwrap();
            let broker = BrokerRegistration {
                incarnation: Uuid::from_u128(1000 + turn),
                features: supported_features(),
                ..broker(*id, None)
            };
            let previous_epoch = clean.then_some(known.epoch);
            let asked = Registration { broker, previous_epoch, ..super::registration::asking(*id, 0) };
            register(image, &RULES, &asked, false).records
        }
        Step::Isr { members, recovering } => {
            let named = |id: &BrokerId| *id == now.leader || members & (1 << id) != 0;
            let epoch = |id: BrokerId| image.broker(id).unwrap().epoch;
            let new = NewIsr {
                partition: 0,
                leader_epoch: now.leader_epoch,
                partition_epoch: now.partition_epoch,
                isr: now.replicas.iter().copied().filter(named).map(|id| (id, epoch(id))).collect(),
                recovering: *recovering && now.recovering,
            };
            let Some(leader) = image.broker(now.leader) else { return (Vec::new(), false) };
            let asked = AlterPartition {
                broker: leader.id,
                broker_epoch: leader.epoch,
                topics: vec![(topic_id(1), vec![new])],
            };
            alter_partition(image, &RULES, &asked).records
        }
        Step::Elect(asked) => elect_leaders(image, &RULES, *asked, None).records,
        Step::Balance => balance_leaders(image, &RULES).records,
        Step::ElectUnclean => elect_unclean(image, &RULES).records,
        Step::Reassign { replicas } => {
            let asked = Reassignment { partition: 0, replicas: replicas.clone() };
            reassign(image, &RULES, &[("t".to_owned(), vec![asked])], true).records
        }
    };
    (records, matches!(step, Step::Elect(Asked::Unclean)))
}

fn is_set(ids: &[BrokerId]) -> bool {
    ids.iter().enumerate().all(|(at, id)| !ids[..at].contains(id))
}

/// What holds of every state.
fn check_state(state: &PartitionState, min_isr: usize) -> Result<(), TestCaseError> {
    let among = |ids: &[BrokerId]| ids.iter().all(|id| state.replicas.contains(id));
    prop_assert!(!state.isr.is_empty(), "somebody is in sync: {state:?}");
    for ids in [&state.replicas, &state.isr, &state.elr, &state.adding, &state.removing] {
        prop_assert!(is_set(ids) && among(ids), "a set of replicas: {state:?}");
    }
    prop_assert!(!state.has_leader() || state.isr.contains(&state.leader), "the leader is in sync: {state:?}");
    prop_assert!(state.isr.iter().all(|id| !state.elr.contains(id)), "eligible is not in sync: {state:?}");
    let enough = state.has_leader() && state.isr.len() >= min_isr;
    prop_assert!(!enough || state.elr.is_empty(), "nobody else is eligible above the minimum: {state:?}");
    prop_assert!(!state.recovering || state.isr.len() == 1 || !state.has_leader(), "recovery is done alone: {state:?}");
    let left = state.replicas.iter().filter(|id| !state.removing.contains(id)).count();
    prop_assert!(left > 0, "a reassignment leaves somebody: {state:?}");
    prop_assert_eq!(state.directories.len(), state.replicas.len());
    Ok(())
}

/// What holds of every change.
fn check_change(old: &PartitionState, new: &PartitionState, may_lose: bool) -> Result<(), TestCaseError> {
    if old == new {
        return Ok(());
    }
    prop_assert_eq!(new.partition_epoch, old.partition_epoch + 1, "{:?} to {:?}", old, new);
    let led_anew = new.leader != old.leader || old.replicas.iter().any(|id| !new.replicas.contains(id));
    prop_assert_eq!(new.leader_epoch, old.leader_epoch + i32::from(led_anew), "{:?} to {:?}", old, new);
    let trusted = |id: &BrokerId| old.isr.contains(id) || old.elr.contains(id);
    let takes_over = new.has_leader() && new.leader != old.leader;
    let moved = new.replicas != old.replicas;
    prop_assert!(!takes_over || may_lose || moved || trusted(&new.leader), "{old:?} to {new:?}");
    prop_assert!(
        may_lose || !new.recovering || old.recovering,
        "nobody asked for an unclean leader: {old:?} to {new:?}"
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_partition_keeps_what_must_hold(
        steps in prop::collection::vec(step(), 1..60),
        min_isr in 1..=3i16,
        unclean in prop::bool::weighted(0.2),
        eligible in prop::bool::weighted(0.8),
    ) {
        let mut image = replicated(BROKERS, min_isr);
        let three = PartitionState::new(vec![1, 2, 3], vec![directory(1), directory(2), directory(3)]);
        set_state(&mut image, three);
        let level = i16::from(eligible);
        apply(&mut image, &[MetadataRecord::Feature { name: "eligible.leader.replicas.version".into(), level }]);
        if unclean {
            apply(&mut image, &[topic_config("unclean.leader.election.enable", "true")]);
        }
        for (turn, step) in (0..).zip(&steps) {
            let (records, asked_for_loss) = records(&image, step, turn);
            for record in &records {
                let old = state(&image);
                apply(&mut image, std::slice::from_ref(record));
                check_change(&old, &state(&image), unclean || asked_for_loss)?;
            }
            let factor = state(&image).replicas.len();
            check_state(&state(&image), usize::try_from(min_isr).unwrap().min(factor))?;
            if let Some(leader) = image.broker(state(&image).leader) {
                prop_assert!(leader.is_active(), "the leader serves: {step:?}");
            }
        }
    }
}
