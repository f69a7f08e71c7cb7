//! `__consumer_offsets` as the group coordinator sees it, kept by this node's partitions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::base::rules::{Rule, holds};
use crate::base::{LeaderEpoch, Offset, PartitionIndex};
use crate::coordinator::group::driver::log::{AppendRefused, CommitFailed, CommitWait, OffsetsLog, ReadFailed};
use crate::host::task;
use crate::log::{AppendError, NewBatch};
use crate::records::BatchHeader;
use crate::replica::{AckFailure, AckTicket, FlushPolicy, Flusher, Partition, PartitionError, Partitions, Role};

pub const TOPIC: &str = "__consumer_offsets";

/// Bytes read at once while a partition is loaded.
const READ_BYTES_MAX: usize = 1 << 20;

pub struct ReplicaOffsetsLog {
    partitions: Arc<Partitions>,
    flusher: Arc<Flusher>,
    policy: FlushPolicy,
    /// `offsets.commit.timeout.ms`
    timeout: Duration,
}

impl ReplicaOffsetsLog {
    pub fn new(
        partitions: Arc<Partitions>,
        flusher: Arc<Flusher>,
        policy: FlushPolicy,
        timeout: Duration,
    ) -> ReplicaOffsetsLog {
        ReplicaOffsetsLog { partitions, flusher, policy, timeout }
    }

    fn partition(&self, index: PartitionIndex) -> Option<Arc<Partition>> {
        self.partitions.partition(TOPIC, index)
    }

    /// Resolves when everything below `below`, which a leader of `epoch` appended, is committed and as durable as the policy asks.
    fn committed_below(&self, partition: &Arc<Partition>, below: Offset, epoch: LeaderEpoch) -> CommitWait {
        let is_safe = partition.is_acked(below) || !holds(Rule::GroupWaitsForHighWatermark);
        if is_safe && partition.leader_epoch() == epoch {
            return Box::pin(std::future::ready(Ok(())));
        }
        let ticket = AckTicket::new();
        partition.claim_committed(below, epoch, &ticket, CLAIM);
        ticket.seal();
        if self.policy == FlushPolicy::Sync {
            self.flusher.request(partition);
        }
        let timeout = self.timeout;
        Box::pin(async move {
            let _ = task::timeout(timeout, ticket.clone().wait()).await;
            ticket.outcome(CLAIM).map_err(failed)
        })
    }
}

/// The number of a ticket's only claim.
const CLAIM: usize = 0;

fn failed(failure: AckFailure) -> CommitFailed {
    match failure {
        AckFailure::NotLeader => CommitFailed::NotLeader,
        AckFailure::NotEnoughReplicas | AckFailure::TimedOut => CommitFailed::TimedOut,
        AckFailure::Storage => CommitFailed::Storage,
    }
}

impl OffsetsLog for ReplicaOffsetsLog {
    fn partitions(&self) -> i32 {
        let topic = self.partitions.topic(TOPIC);
        topic.map_or(0, |topic| i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX))
    }

    fn append(&self, partition: PartitionIndex, batch: Bytes) -> Result<CommitWait, AppendRefused> {
        let partition = self.partition(partition).ok_or(AppendRefused::NotLeader)?;
        let header = BatchHeader::parse(&batch).map_err(|_| AppendRefused::TooLarge)?;
        if batch.len() > partition.config().max_message_bytes {
            return Err(AppendRefused::TooLarge);
        }
        let batch = NewBatch { header, bytes: &batch };
        let appended = partition.append(&batch, true).map_err(|error| refused(&error))?;
        Ok(self.committed_below(&partition, appended.last_offset + 1, appended.leader_epoch))
    }

    fn read_from(&self, partition: PartitionIndex, offset: Offset) -> Result<Option<Bytes>, ReadFailed> {
        let failed = |error: &dyn std::fmt::Display| ReadFailed(error.to_string());
        let Some(partition) = self.partition(partition) else {
            return Err(ReadFailed("the partition is not here".to_owned()));
        };
        if let Some(reason) = partition.failure() {
            return Err(ReadFailed(format!("the log directory is out of service: {reason}")));
        }
        let view = partition.view().map_err(|error| failed(&error))?;
        let from = offset.max(view.log_start_offset);
        let end = view.log_end_offset;
        if from >= end {
            return Ok(None);
        }
        let slice = view.read(from, READ_BYTES_MAX, end, true).map_err(|error| failed(&error))?;
        let Some(slice) = slice else { return Ok(None) };
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).map_err(|error| failed(&error))?;
        Ok(Some(bytes.into()))
    }

    fn log_end(&self, partition: PartitionIndex) -> Offset {
        self.partition(partition).and_then(|partition| partition.view().ok()).map_or(0, |view| view.log_end_offset)
    }

    fn committed(&self, partition: PartitionIndex) -> Option<CommitWait> {
        let partition = self.partition(partition)?;
        let Role::Leader { epoch } = partition.role() else {
            return Some(Box::pin(std::future::ready(Err(CommitFailed::NotLeader))));
        };
        let end = partition.view().ok()?.log_end_offset;
        (!partition.is_acked(end)).then(|| self.committed_below(&partition, end, epoch))
    }

    fn may_have_successors(&self) -> bool {
        self.partitions.may_have_successors()
    }
}

fn refused(error: &PartitionError) -> AppendRefused {
    match error {
        PartitionError::NotLeader => AppendRefused::NotLeader,
        PartitionError::NotEnoughReplicas => AppendRefused::NotEnoughReplicas,
        PartitionError::Append(AppendError::TooLarge { .. }) => AppendRefused::TooLarge,
        PartitionError::Append(AppendError::Storage(error)) if error.is_disk_full() => AppendRefused::DiskFull,
        PartitionError::Offline(_) | PartitionError::Append(_) => AppendRefused::Storage,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::thread::JoinHandle;

    use super::*;
    use crate::base::{ErrorCode, TopicId};
    use crate::coordinator::group::words::{CommitOffsets, MemberRef, OffsetToCommit};
    use crate::coordinator::group::{GroupConfig, GroupCoordinator};
    use crate::host::Clock;
    use crate::host::sim::{Crash, SimHost};
    use crate::log::LogEnv;
    use crate::metadata::config::LogConfig;
    use crate::metadata::{Image, MetadataRecord, PartitionState};
    use crate::replica::journal::{self, Journal};
    use crate::replica::{Checkpoints, LogDirs, ReplicaOptions};
    use crate::telemetry::Telemetry;

    /// A node's groups on a simulated disk, with one partition of `__consumer_offsets`.
    struct Node {
        sim: SimHost,
        log: Arc<ReplicaOffsetsLog>,
        groups: Arc<GroupCoordinator>,
        flusher: Arc<Flusher>,
        flusher_thread: JoinHandle<()>,
    }

    impl Node {
        async fn start(sim: &SimHost) -> Node {
            Node::start_with(sim, &image(), Duration::from_secs(5)).await
        }

        async fn start_with(sim: &SimHost, image: &Image, commit_timeout: Duration) -> Node {
            let (host, dir) = (sim.host(), PathBuf::from("/data"));
            host.disk.create_dir_all(&dir).expect("a directory");
            host.disk.sync_dir(&PathBuf::from("/")).expect("its name is kept");
            journal::recover(&*host.disk, &dir).expect("a journal that can be read");
            let journal = Journal::create(&*host.disk, &dir).expect("a journal");
            let telemetry = Telemetry::new(0);
            let partitions = Arc::new(Partitions::new(
                LogEnv::new(host.clone(), 100),
                LogDirs::only(dir.clone(), &Checkpoints::take(&*host.disk, &dir).expect("checkpoints")),
                ReplicaOptions::new(1, FlushPolicy::Sync, 30_000),
                Box::new(|_, _| LogConfig::default()),
                telemetry.clone(),
            ));
            partitions.apply(image, true);
            let (flusher, flusher_thread) =
                Flusher::start(Some(journal), host.clock.clone(), telemetry).expect("a thread");
            let log = Arc::new(ReplicaOffsetsLog::new(partitions, flusher.clone(), FlushPolicy::Sync, commit_timeout));
            let node = Node { sim: sim.clone(), groups: groups(sim, &log), log, flusher, flusher_thread };
            node.groups.clone().load_all().await;
            node
        }

        async fn commit(&self, offset: Offset) -> Result<Vec<ErrorCode>, ErrorCode> {
            let (topic_id, member) = (TopicId::ZERO, MemberRef { member_id: "", instance_id: None });
            let offsets =
                [OffsetToCommit { topic: "t", topic_id, partition: 0, offset, leader_epoch: -1, metadata: "" }];
            let commit = CommitOffsets {
                group: "g",
                generation: -1,
                member,
                group_id_not_found_known: true,
                retention_ms: None,
                offsets: &offsets,
            };
            self.groups.commit_offsets(&commit).await
        }

        /// What clients are shown.
        async fn shown(&self) -> Result<Vec<Offset>, ErrorCode> {
            let fetched = self.groups.fetch_offsets("g", None, false).await?;
            Ok(fetched.iter().flat_map(|topic| &topic.partitions).map(|one| one.offset).collect())
        }

        /// What somebody knows who reads the log from its beginning now.
        async fn replayed(&self) -> Vec<Offset> {
            let fresh = groups(&self.sim, &self.log);
            fresh.clone().load_all().await;
            offsets_of(&fresh)
        }

        /// The machine goes down with everything that is not synced, and comes up again.
        async fn crash_and_restart(self, how: Crash) -> Node {
            self.flusher.stop();
            self.flusher_thread.join().expect("the flusher ends");
            self.sim.disk.crash(how);
            Node::start(&self.sim).await
        }
    }

    fn groups(sim: &SimHost, log: &Arc<ReplicaOffsetsLog>) -> Arc<GroupCoordinator> {
        Arc::new(GroupCoordinator::new(sim.host(), log.clone(), GroupConfig::default()))
    }

    fn offsets_of(groups: &GroupCoordinator) -> Vec<Offset> {
        let mut offsets = Vec::new();
        groups.for_each_offset(|_, _, _, offset| offsets.push(offset));
        offsets
    }

    fn image() -> Image {
        image_on(vec![1])
    }

    fn image_on(replicas: Vec<i32>) -> Image {
        let mut image = Image::empty();
        let topic = MetadataRecord::Topic {
            id: TopicId::from_bytes([1; 16]),
            name: TOPIC.into(),
            partitions: vec![PartitionState::new(replicas, vec![])],
        };
        image.apply(image.offset + 1, &topic).expect("applies");
        image
    }

    fn done() -> Result<Vec<ErrorCode>, ErrorCode> {
        Ok(vec![ErrorCode::NONE])
    }

    #[tokio::test]
    async fn a_write_that_fails_ends_the_service_and_a_restart_finds_what_was_acknowledged() {
        for how in [Crash::PowerLosesAll, Crash::PowerLosesSome, Crash::Process] {
            let node = Node::start(&SimHost::new(11)).await;
            assert_eq!(node.commit(5).await, done());
            node.sim.disk.cut_power_at(1);
            assert_eq!(node.commit(6).await, Err(ErrorCode::NOT_COORDINATOR));
            assert_eq!(node.shown().await, Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
            node.groups.reload_distrusted().await;
            assert_eq!(node.shown().await, Err(ErrorCode::NOT_COORDINATOR), "the directory is out of service");
            assert_eq!(node.commit(7).await, Err(ErrorCode::NOT_COORDINATOR));

            let node = node.crash_and_restart(how).await;
            assert_eq!((node.shown().await, node.replayed().await), (Ok(vec![5]), vec![5]), "{how:?}");
            assert_eq!(node.commit(8).await, done());
            assert_eq!((node.shown().await, node.replayed().await), (Ok(vec![8]), vec![8]), "{how:?}");
        }
    }

    #[tokio::test]
    async fn a_sync_that_fails_is_not_tried_again_and_nothing_of_it_is_shown() {
        let node = Node::start(&SimHost::new(12)).await;
        assert_eq!(node.commit(5).await, done());
        node.sim.disk.fail_sync_at(1);
        assert_eq!(node.commit(6).await, Err(ErrorCode::NOT_COORDINATOR));
        let changes = node.sim.disk.write_count();
        let wait = node.log.committed(0).expect("6 is not durable");
        assert_eq!(wait.await, Err(CommitFailed::Storage));
        assert_eq!(node.sim.disk.write_count(), changes, "the disk is not asked again");
        node.groups.reload_distrusted().await;
        for _ in 0..3 {
            assert_eq!(node.shown().await, Err(ErrorCode::NOT_COORDINATOR));
            assert_eq!(node.commit(7).await, Err(ErrorCode::NOT_COORDINATOR));
        }
        let node = node.crash_and_restart(Crash::PowerLosesAll).await;
        assert_eq!((node.shown().await, node.replayed().await), (Ok(vec![5]), vec![5]));
    }

    #[tokio::test]
    async fn a_node_that_stood_still_for_longer_than_its_session_tells_nobody_what_it_knew() {
        let node = Node::start(&SimHost::new(14)).await;
        assert_eq!(node.commit(5).await, done());
        node.log.partitions.set_session_end(node.sim.clock.monotonic_ms() + 5_000);
        node.sim.clock.advance_ms(5_000);
        assert_eq!(node.shown().await, Ok(vec![5]));
        node.sim.clock.advance_ms(1);
        assert_eq!(node.shown().await, Err(ErrorCode::NOT_COORDINATOR));
        assert_eq!(node.groups.describe("g").err(), Some(ErrorCode::NOT_COORDINATOR));
        node.log.partitions.set_session_end(node.sim.clock.monotonic_ms() + 5_000);
        assert_eq!(node.shown().await, Ok(vec![5]), "an answer to a newer heartbeat has come");
    }

    #[tokio::test]
    async fn a_full_disk_refuses_commits_and_heals() {
        let node = Node::start(&SimHost::new(13)).await;
        assert_eq!(node.commit(5).await, done());
        node.sim.disk.set_capacity_bytes(node.sim.disk.used_bytes());
        assert_eq!(node.commit(6).await, Err(ErrorCode::NOT_COORDINATOR));
        assert_eq!((node.shown().await, node.replayed().await), (Ok(vec![5]), vec![5]));
        node.sim.disk.set_capacity_bytes(u64::MAX);
        assert_eq!(node.commit(7).await, done());
        assert_eq!((node.shown().await, node.replayed().await), (Ok(vec![7]), vec![7]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_that_a_follower_does_not_take_is_given_up_when_its_time_is_over() {
        for timeout in [Duration::from_millis(300), Duration::from_secs(20)] {
            let node = Node::start_with(&SimHost::new(14), &image_on(vec![1, 2]), timeout).await;
            let asked_at = task::moment();
            assert_eq!(node.commit(5).await, Err(ErrorCode::COORDINATOR_NOT_AVAILABLE));
            let took = task::moment().duration_since(asked_at);
            assert!(took >= timeout && took < 2 * timeout, "{took:?} of {timeout:?}");
        }
    }
}
