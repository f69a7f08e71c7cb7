//! Metadata records in record batches: one JSON value per record, offsets dense, so that ordinary log tools read the file.

use std::fmt;

use crate::base::{LeaderEpoch, Offset, TimestampMs};
use crate::metadata::MetadataRecord;
use crate::records::{BatchBuilder, Codec};

/// Why a batch whose checksum is right still cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadRecord {
    pub(super) offset: Offset,
    pub(super) what: String,
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.what)
    }
}

/// One batch of all the records.
pub(super) fn encode<'a>(
    records: impl IntoIterator<Item = &'a MetadataRecord>,
    base_offset: Offset,
    epoch: LeaderEpoch,
    now: TimestampMs,
) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Codec::None);
    for record in records {
        builder.push(now, None, Some(&record.to_json()), &[]);
    }
    builder.finish(base_offset, epoch)
}

/// The records of one whole batch, with their offsets, passed on one by one.
pub(super) fn decode(
    batch: &[u8],
    mut each: impl FnMut(Offset, MetadataRecord) -> Result<(), BadRecord>,
) -> Result<(), BadRecord> {
    let bad = |offset, what: String| BadRecord { offset, what };
    let records = crate::records::records(batch, batch.len()).map_err(|error| bad(-1, error.to_string()))?;
    for record in &records {
        let record = record.map_err(|error| bad(-1, error.to_string()))?;
        let value = record.value.unwrap_or_default();
        if value.first() != Some(&b'{') {
            return Err(bad(
                record.offset,
                "not one of Barnabas' records; is this another broker's directory?".to_owned(),
            ));
        }
        let parsed = MetadataRecord::from_json(value).map_err(|error| bad(record.offset, error.to_string()))?;
        each(record.offset, parsed)?;
    }
    Ok(())
}
