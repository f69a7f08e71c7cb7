//! One batch of coordinator records, as the log takes it.

use bytes::Bytes;

use crate::base::TimestampMs;
use crate::base::ids::NO_LEADER_EPOCH;
use crate::coordinator::group::record::Record;
use crate::records::{BatchBuilder, Codec};

pub fn build<'r, 'd: 'r>(records: impl IntoIterator<Item = &'r Record<'d>>, timestamp: TimestampMs) -> Bytes {
    let mut builder = BatchBuilder::new(Codec::None);
    let (mut key, mut value) = (Vec::with_capacity(96), Vec::with_capacity(96));
    for record in records {
        key.clear();
        value.clear();
        record.encode_key(&mut key);
        let has_value = record.encode_value(&mut value);
        builder.push(timestamp, Some(&key), has_value.then_some(&*value), &[]);
    }
    builder.finish(0, NO_LEADER_EPOCH).into()
}
