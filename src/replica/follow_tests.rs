//! A follower's log, cut: what is said of it while that goes wrong, or while another one is cutting it.

use super::deletion_tests::new_world;
use super::durability_tests::{World, image_on};
use super::*;
use crate::records::{BatchBuilder, Codec};

const SAYS: LeaderSays = LeaderSays { high_watermark: 10, log_start_offset: 0 };

/// One record a batch, as a leader of epoch 0 would send them.
fn records(offsets: std::ops::Range<i64>) -> bytes::Bytes {
    let batch = |offset| {
        let mut builder = BatchBuilder::new(Codec::None);
        builder.push(1_700_000_000_000, None, Some(b"value"), &[]);
        builder.finish(offset, 0)
    };
    offsets.flat_map(batch).collect::<Vec<u8>>().into()
}

/// Follows node 2 in epoch 1, with ten synced records of epoch 0.
fn following() -> World {
    let world = new_world();
    world.partitions.apply(&image_on(1, 1, vec![2, 1]), true);
    let partition = world.partition(0);
    partition.append_as_follower(1, &records(0..10), SAYS).unwrap();
    let ticket = AckTicket::new();
    partition.claim_synced(10, &ticket, 0);
    world.flusher.request(&partition);
    while ticket.outcome(0).is_err() {
        std::thread::yield_now();
    }
    assert!(partition.is_durable(10));
    world
}

#[test]
fn a_cut_that_was_interrupted_takes_back_what_was_said_of_the_device() {
    let world = following();
    let partition = world.partition(0);
    world.sim.disk.run_out_of_descriptors(true);
    assert!(partition.cut_to_divergence(&world.flusher, 1, 0, 5).is_err());
    world.sim.disk.run_out_of_descriptors(false);
    let end = partition.with_log(|log| log.log_end_offset()).unwrap();
    assert_eq!(end, 5, "the cut itself was done");
    assert!(!partition.is_durable(6), "nothing is there");
    assert_eq!(partition.high_watermark(), 5);
    assert!(partition.append_as_follower(1, &records(5..8), SAYS).is_ok());
    assert!(!partition.is_durable(6), "it was not synced");
}
