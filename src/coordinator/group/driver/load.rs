//! Reading a partition of `__consumer_offsets` from its beginning into a machine. What cannot be read fails the load: an offset that
//! is there must never look as if it were not.

use thiserror::Error;

use super::log::{OffsetsLog, ReadFailed};
use crate::base::limits::DECOMPRESSED_BYTES_MAX;
use crate::base::{Offset, PartitionIndex};
use crate::coordinator::group::machine::Machine;
use crate::coordinator::group::record::{DecodeError, Record};
use crate::records::{BatchHeader, Batches, ControlKind, RecordError, records};

#[derive(Debug, Error)]
pub enum LoadFailed {
    #[error("reading at offset {offset}: {source}")]
    Read { offset: Offset, source: ReadFailed },
    #[error("the batch at offset {offset}: {source:?}")]
    Batch { offset: Offset, source: RecordError },
    #[error("the record at offset {offset}: {source}")]
    Record { offset: Offset, source: DecodeError },
}

/// A loaded machine and how many records went into it.
pub struct Loaded {
    pub machine: Machine,
    pub records: u64,
}

pub fn load(log: &dyn OffsetsLog, partition: PartitionIndex) -> Result<Loaded, LoadFailed> {
    let mut loaded = Loaded { machine: Machine::default(), records: 0 };
    let mut offset = 0;
    while let Some(bytes) = log.read_from(partition, offset).map_err(|source| LoadFailed::Read { offset, source })? {
        let before = offset;
        for batch in Batches::new(&bytes) {
            let (header, batch) = batch.map_err(|source| LoadFailed::Batch { offset, source })?;
            loaded.replay_batch(&header, batch)?;
            offset = header.next_offset();
        }
        if offset == before {
            break; // Not one whole batch: nothing more can come of it.
        }
    }
    Ok(loaded)
}

impl Loaded {
    fn replay_batch(&mut self, header: &BatchHeader, batch: &[u8]) -> Result<(), LoadFailed> {
        let in_batch = |source| LoadFailed::Batch { offset: header.base_offset, source };
        for record in &records(batch, DECOMPRESSED_BYTES_MAX).map_err(in_batch)? {
            let record = record.map_err(in_batch)?;
            self.records += 1;
            let Some(key) = record.key else { continue };
            if header.is_control() {
                self.replay_marker(header, key);
                continue;
            }
            let in_record = |source| LoadFailed::Record { offset: record.offset, source };
            match Record::decode(key, record.value).map_err(in_record)? {
                Some(decoded) if header.is_transactional() => self.machine.replay_pending(header.producer_id, decoded),
                Some(decoded) => self.machine.replay(decoded),
                None => {}
            }
        }
        Ok(())
    }

    fn replay_marker(&mut self, header: &BatchHeader, key: &[u8]) {
        match ControlKind::parse_key(key) {
            Some(ControlKind::Commit) => self.machine.replay_end(header.producer_id, true),
            Some(ControlKind::Abort) => self.machine.replay_end(header.producer_id, false),
            _ => {}
        }
    }
}
