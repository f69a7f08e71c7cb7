//! The leader's log starts inside a batch, as after a DeleteRecords: copies that are made then hold that batch whole, start where the
//! leader's log does, and are as good as the others.

use std::sync::atomic::Ordering;

use super::*;

/// Of a batch.
const RECORDS: Offset = 10;

fn batch_of(numbers: std::ops::Range<Offset>) -> Vec<u8> {
    let sequence = i32::try_from(numbers.start).unwrap();
    let mut builder = BatchBuilder::new(Codec::None).with_producer(77, 0, sequence);
    for number in numbers {
        builder.push(1_700_000_000_000, None, Some(format!("value {number}").as_bytes()), &[]);
    }
    builder.finish(0, -1)
}

impl Cluster {
    /// Appends batches of ten records up to `end`.
    pub(super) fn fill(&self, leader: BrokerId, end: Offset) {
        let partition = self.node(leader).partition();
        for at in (self.node(leader).end()..end).step_by(RECORDS as usize) {
            let bytes = batch_of(at..at + RECORDS);
            let new = NewBatch { header: BatchHeader::parse(&bytes).unwrap(), bytes: &bytes };
            partition.append(&new, false).unwrap();
        }
    }

    pub(super) fn delete_before(&self, leader: BrokerId, offset: Offset) {
        let partition = self.node(leader).partition();
        partition.with_log(|log| log.delete_records_before(offset)).unwrap().unwrap();
        partition.follower_waiters.wake_all();
    }

    pub(super) fn span(&self, id: BrokerId) -> (Offset, Offset) {
        let view = self.node(id).partition().view().unwrap();
        (view.log_start_offset, view.log_end_offset)
    }

    fn low_watermark(&self, id: BrokerId) -> Option<Offset> {
        let partition = self.node(id).partition();
        partition.low_watermark(partition.leader_epoch())
    }

    pub(super) async fn until_span(&self, id: BrokerId, span: (Offset, Offset)) {
        self.until(&format!("{id} has {span:?}"), |cluster| cluster.span(id) == span).await;
    }
}

/// Node 3 had everything up to `end` when its wire was cut; the leader has five batches by now, and its log starts at 25.
async fn with_a_start_inside_a_batch(seed: u64, end: Offset) -> Cluster {
    let mut cluster = Cluster::seeded(seed);
    cluster.fill(1, end);
    cluster.until_span(3, (0, end)).await;
    cluster.wires.cut.lock().push(3);
    cluster.set_isr(&[1, 2]);
    cluster.tell_all();
    cluster.fill(1, 50);
    cluster.until("it is committed", |cluster| cluster.node(1).partition().high_watermark() == 50).await;
    cluster.delete_before(1, 25);
    cluster.until_span(2, (25, 50)).await;
    cluster
}

#[tokio::test]
async fn a_new_copy_begins_with_the_batch_that_the_leaders_log_starts_in_and_starts_there_too() {
    let mut cluster = with_a_start_inside_a_batch(0, 0).await;
    cluster.wires.cut.lock().clear();
    cluster.until_span(3, (25, 50)).await;
    assert_eq!(cluster.node(3).values(), cluster.node(1).values());
    let of = |id| cluster.node(id).partition();
    assert_eq!(of(3).view().unwrap().epochs, of(1).view().unwrap().epochs);
    assert!(of(3).with_log(|log| log.knows_producer(77)).unwrap());
    cluster.until("it is told", |cluster| cluster.node(3).partition().high_watermark() == 50).await;

    cluster.elect(3, &[3]);
    cluster.tell_all();
    assert_eq!(cluster.span(3), (25, 50), "it leads with the same");
    cluster.set_isr(&NODES);
    cluster.tell_all();
    assert_eq!(cluster.produce(3, "more", PATIENCE).await, Ok(()));
    cluster.until_equal().await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_copy_that_ends_below_a_start_inside_a_batch_goes_on_there() {
    for end in [10, 20] {
        let cluster = with_a_start_inside_a_batch(0, end).await;
        cluster.wires.cut.lock().clear();
        cluster.until_span(3, (25, 50)).await;
        assert_eq!(cluster.node(3).values(), cluster.node(1).values());
        cluster.stop().await;
    }
}

#[tokio::test]
async fn a_copy_of_a_later_leader_shares_its_epochs_from_the_start_on() {
    let mut cluster = with_a_start_inside_a_batch(0, 0).await;
    cluster.elect(2, &[1, 2]);
    cluster.tell_all();
    cluster.fill(2, 80);
    cluster.until("it is committed", |cluster| cluster.node(2).partition().high_watermark() == 80).await;
    for start in [45, 55, 75] {
        cluster.delete_before(2, start);
        cluster.wires.cut.lock().clear();
        cluster.until_span(3, (start, 80)).await;
        assert_eq!(cluster.node(3).values(), cluster.node(2).values());
        let of = |id| cluster.node(id).partition().view().unwrap().epochs.clone();
        assert_eq!(of(3), of(2), "from {start}");
        cluster.wires.cut.lock().push(3);
        // A new disk.
        let at = cluster.nodes.iter().position(|node| node.id == 3).unwrap();
        cluster.nodes.remove(at).stop().await;
        let sim = SimHost::new(3);
        sim.disk.create_dir_all(Path::new(LOG_DIR)).unwrap();
        sim.disk.sync_dir(Path::new("/")).unwrap();
        cluster.broker_epochs[2] += 1;
        cluster.nodes.push(Node::start(3, sim, &cluster.wires));
        cluster.tell(3);
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_copy_that_begins_inside_a_batch_is_the_same_after_a_restart() {
    let mut cluster = with_a_start_inside_a_batch(0, 0).await;
    cluster.wires.cut.lock().clear();
    cluster
        .until("it has told so", |cluster| cluster.span(3) == (25, 50) && cluster.node(3).partition().is_durable(50))
        .await;
    cluster.node(3).partition().with_log(|log| log.checkpoint()).unwrap().unwrap();
    cluster.node(3).partitions.save_checkpoints();
    cluster.wires.cut.lock().push(3);
    let values = cluster.node(3).values();
    cluster.power_cut(3).await;
    cluster.tell(3);
    assert_eq!(cluster.span(3), (25, 50), "without a word from the leader");
    assert_eq!(cluster.node(3).values(), values);
    cluster.fill(1, 60);
    cluster.wires.cut.lock().clear();
    cluster.until_span(3, (25, 60)).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_first_batch_that_is_damaged_on_the_way_is_asked_for_again() {
    let cluster = with_a_start_inside_a_batch(0, 0).await;
    *cluster.wires.corrupt.lock() = true;
    cluster.wires.cut.lock().clear();
    cluster.until_span(3, (25, 50)).await;
    assert!(!*cluster.wires.corrupt.lock(), "something was corrupted");
    assert_eq!(cluster.node(3).values(), cluster.node(1).values());
    cluster.stop().await;
}

#[tokio::test]
async fn what_a_follower_says_of_its_start_outlives_its_crash() {
    for how in [Crash::Process, Crash::PowerLosesAll] {
        let mut cluster = Cluster::new();
        cluster.fill(1, 50);
        cluster.until("it is committed", |cluster| cluster.node(1).partition().high_watermark() == 50).await;
        cluster.delete_before(1, 25);
        cluster.until("all say so", |cluster| cluster.low_watermark(1) == Some(25)).await;
        cluster.wires.cut.lock().extend(NODES);
        for id in [2, 3] {
            cluster.crash(id, how).await;
            cluster.tell(id);
            assert_eq!(cluster.span(id), (25, 50), "{how:?}: without a word from the leader");
        }
        cluster.stop().await;
    }
}

#[tokio::test]
async fn a_follower_that_cannot_write_its_start_does_not_say_it_and_goes_on() {
    let cluster = Cluster::new();
    cluster.fill(1, 50);
    cluster.until("it is committed", |cluster| cluster.node(1).partition().high_watermark() == 50).await;
    cluster.until_span(2, (0, 50)).await;
    cluster.disk(2).set_capacity_bytes(0);
    cluster.delete_before(1, 25);
    cluster
        .until("it was tried", |cluster| cluster.node(2).partition().log_dir().is_unsaved.load(Ordering::Relaxed))
        .await;
    cluster.until_span(3, (25, 50)).await;
    assert_eq!(cluster.low_watermark(1), Some(0));
    cluster.disk(2).set_capacity_bytes(u64::MAX);
    cluster.fill(1, 60);
    cluster.until_span(2, (25, 60)).await;
    assert_eq!(cluster.low_watermark(1), Some(0), "the housekeeper has not come by yet");
    cluster.node(2).partitions.save_checkpoints();
    cluster.until("all say so", |cluster| cluster.low_watermark(1) == Some(25)).await;
    cluster.stop().await;
}

#[tokio::test]
async fn who_does_not_lead_any_more_says_nothing_of_other_starts_and_deletes_nothing() {
    let cluster = Cluster::new();
    cluster.fill(1, 50);
    cluster.until("it is committed", |cluster| cluster.node(1).partition().high_watermark() == 50).await;
    let partition = cluster.node(1).partition();
    let epoch = partition.leader_epoch();
    assert_eq!(partition.low_watermark(epoch), Some(0));
    for other in [epoch - 1, epoch + 1] {
        assert_eq!(partition.low_watermark(other), None, "its own start says nothing of those that may lead now");
        let refused = partition.as_leader(other, |log| log.delete_records_before(25));
        assert!(matches!(refused, Err(PartitionError::NotLeader)));
    }
    assert_eq!(cluster.span(1), (0, 50));
    cluster.stop().await;
}
