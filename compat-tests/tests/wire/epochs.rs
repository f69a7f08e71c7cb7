//! Leader epochs: one value everywhere, checked in both directions, never going back. Traps 46 and 59.

use compat_tests::Broker;
use compat_tests::batch::{Batch, stored};

use crate::calls::{
    FENCED_LEADER_EPOCH, Fetch, FetchPartition, NONE, UNKNOWN_LEADER_EPOCH, epoch_end, list_offset, metadata, produce,
    topic,
};

#[test]
fn a_wrong_epoch_is_fenced_or_unknown_everywhere() {
    let broker = Broker::start();
    let name = topic(&broker, "epochs", 1, &[]);
    let mut connection = broker.connect();
    produce(&mut connection, &name, 0, &Batch::of(["a"]));
    let current = metadata(&mut connection, &name).partitions[0].leader_epoch;
    let fetch = |connection: &mut compat_tests::wire::Connection, leader_epoch| {
        let partition = FetchPartition { leader_epoch, ..FetchPartition::from(0, 0) };
        Fetch::of(11, &name, [0; 16], &[partition]).call(connection).partitions[0].error
    };
    for (epoch, error) in
        [(current, NONE), (-1, NONE), (current + 1, UNKNOWN_LEADER_EPOCH), (current + 100, UNKNOWN_LEADER_EPOCH)]
    {
        assert_eq!(fetch(&mut connection, epoch), error, "fetch with epoch {epoch}");
        assert_eq!(list_offset(&mut connection, &name, 0, epoch, -1).0, error, "list_offsets with epoch {epoch}");
        assert_eq!(
            epoch_end(&mut connection, &name, epoch, current).0,
            error,
            "offset_for_leader_epoch with epoch {epoch}"
        );
    }
    assert_eq!(list_offset(&mut connection, &name, 0, -1, -1).3, current, "ListOffsets tells the same epoch");
    assert_eq!(epoch_end(&mut connection, &name, -1, current), (NONE, current, 1));
}

/// Trap 46: over restarts the epoch never falls; each past epoch still tells where it ended.
#[test]
fn epochs_never_fall_over_restarts_and_keep_their_ends() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let name = topic(&broker, "restarts", 1, &[]);
    let mut seen: Vec<(i32, i64)> = Vec::new();
    for round in 0..6 {
        let mut connection = broker.connect();
        let epoch = compat_tests::until("a leader after the start", compat_tests::clients::CALL_MAX, || {
            metadata(&mut connection, &name).partitions.first().filter(|p| p.leader >= 0).map(|p| p.leader_epoch)
        });
        assert!(seen.last().is_none_or(|(last, _)| *last <= epoch), "epoch {epoch} after {seen:?}");
        assert_eq!(produce(&mut connection, &name, 0, &Batch::of(["a", "b"])), (NONE, round * 2));
        seen.retain(|(e, _)| *e != epoch);
        seen.push((epoch, round * 2 + 2));
        for (past, end) in &seen {
            assert_eq!(epoch_end(&mut connection, &name, -1, *past), (NONE, *past, *end));
        }
        let answer = Fetch::of(11, &name, [0; 16], &[FetchPartition::from(0, 0)]).call(&mut connection);
        let epochs: Vec<i32> =
            stored(answer.partitions[0].records.as_deref().expect("records")).iter().map(|b| b.leader_epoch).collect();
        assert!(epochs.is_sorted() && epochs.last() == Some(&epoch), "{epochs:?}");
        if round % 2 == 0 {
            broker.kill_and_run()
        } else {
            broker.stop_and_run()
        };
    }
    let fenced = seen.first().filter(|(first, _)| *first < seen.last().map_or(0, |s| s.0)).map(|s| s.0);
    if let Some(old) = fenced {
        assert_eq!(list_offset(&mut broker.connect(), &name, 0, old, -1).0, FENCED_LEADER_EPOCH);
    }
}

/// Trap 59, on one node: the controller is a live broker, the cluster's id is there and stays, also over a restart.
#[test]
fn the_controller_is_a_live_broker_and_the_cluster_id_stays() {
    let broker = Broker::start();
    let name = topic(&broker, "identity", 1, &[]);
    let first = metadata(&mut broker.connect(), &name);
    assert!(first.brokers.contains(&first.controller), "{first:?}");
    assert!(first.cluster_id.as_ref().is_some_and(|id| !id.is_empty()), "{first:?}");
    if let Some(mut ours) = Broker::owned(&[]) {
        let name = topic(&ours, "identity", 1, &[]);
        let before = metadata(&mut ours.connect(), &name);
        ours.kill_and_run();
        let after = metadata(&mut ours.connect(), &name);
        assert_eq!((before.cluster_id, before.id), (after.cluster_id, after.id));
    }
}
