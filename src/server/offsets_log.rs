//! `__consumer_offsets` as the group coordinator sees it, kept by this node's partitions.

use std::sync::Arc;

use bytes::Bytes;

use crate::base::{Offset, PartitionIndex};
use crate::coordinator::group::driver::log::{AppendRefused, CommitFailed, CommitWait, OffsetsLog, ReadFailed};
use crate::log::{AppendError, NewBatch};
use crate::records::BatchHeader;
use crate::replica::{FlushPolicy, Flusher, Partition, PartitionError, Partitions, SyncWait};

pub const TOPIC: &str = "__consumer_offsets";

/// What is committed to `__consumer_offsets` counts as if produced with `acks=all`.
const ACKS_ALL: i16 = -1;

/// Bytes read at once while a partition is loaded.
const READ_BYTES_MAX: usize = 1 << 20;

pub struct ReplicaOffsetsLog {
    partitions: Arc<Partitions>,
    flusher: Arc<Flusher>,
    policy: FlushPolicy,
}

impl ReplicaOffsetsLog {
    pub fn new(partitions: Arc<Partitions>, flusher: Arc<Flusher>, policy: FlushPolicy) -> ReplicaOffsetsLog {
        ReplicaOffsetsLog { partitions, flusher, policy }
    }

    fn partition(&self, index: PartitionIndex) -> Option<Arc<Partition>> {
        self.partitions.partition(TOPIC, index)
    }

    /// Resolves when everything below `below` is as durable as the policy asks.
    fn durable(&self, partition: &Arc<Partition>, below: Offset) -> CommitWait {
        let wait = SyncWait::new(ACKS_ALL, self.policy);
        wait.appended(&self.flusher, partition, below);
        match wait.seal() {
            Some(synced) => Box::pin(async move { if synced.await { Ok(()) } else { Err(CommitFailed::Storage) } }),
            None => Box::pin(std::future::ready(Ok(()))),
        }
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
        let appended = partition.append(&NewBatch { header, bytes: &batch }).map_err(|error| refused(&error))?;
        Ok(self.durable(&partition, appended.last_offset + 1))
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
        if self.policy != FlushPolicy::Sync {
            return None;
        }
        let partition = self.partition(partition)?;
        let end = partition.view().ok()?.log_end_offset;
        (!partition.is_durable(end)).then(|| self.durable(&partition, end))
    }
}

fn refused(error: &PartitionError) -> AppendRefused {
    match error {
        PartitionError::NotLeader => AppendRefused::NotLeader,
        PartitionError::Append(AppendError::TooLarge { .. }) => AppendRefused::TooLarge,
        PartitionError::Offline(_) | PartitionError::Append(_) => AppendRefused::Storage,
    }
}
