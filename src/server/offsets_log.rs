//! `__consumer_offsets` as the group coordinator sees it, kept by this node's partitions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::base::{LeaderEpoch, Offset, PartitionIndex};
use crate::coordinator::group::driver::log::{AppendRefused, CommitFailed, CommitWait, OffsetsLog, ReadFailed};
use crate::log::{AppendError, NewBatch};
use crate::records::BatchHeader;
use crate::host::task;
use crate::replica::{
    AckFailure, AckTicket, FlushPolicy, Flusher, Partition, PartitionError, Partitions, Role,
};

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

/// Kafka's default of `offsets.commit.timeout.ms`.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(5);

impl ReplicaOffsetsLog {
    pub fn new(partitions: Arc<Partitions>, flusher: Arc<Flusher>, policy: FlushPolicy) -> ReplicaOffsetsLog {
        ReplicaOffsetsLog { partitions, flusher, policy, timeout: COMMIT_TIMEOUT }
    }

    fn partition(&self, index: PartitionIndex) -> Option<Arc<Partition>> {
        self.partitions.partition(TOPIC, index)
    }

    /// Resolves when everything below `below`, which a leader of `epoch` appended, is committed and as durable as the policy asks.
    fn committed_below(&self, partition: &Arc<Partition>, below: Offset, epoch: LeaderEpoch) -> CommitWait {
        if partition.is_acked(below) && partition.leader_epoch() == epoch {
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
}

fn refused(error: &PartitionError) -> AppendRefused {
    match error {
        PartitionError::NotLeader => AppendRefused::NotLeader,
        PartitionError::NotEnoughReplicas => AppendRefused::NotEnoughReplicas,
        PartitionError::Append(AppendError::TooLarge { .. }) => AppendRefused::TooLarge,
        PartitionError::Offline(_) | PartitionError::Append(_) => AppendRefused::Storage,
    }
}
