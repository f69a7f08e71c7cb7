//! Reading the records of a stored batch one after another, decompressed where they are compressed. This is for readers that
//! need keys and values (compaction, coordinators, time look-ups); the check of a client's batch is `validate`.

use std::borrow::Cow;

use super::codec::Codec;
use super::error::RecordError;
use super::header::{BATCH_HEADER_BYTES, BatchHeader};
use super::record::Record;
use super::source::Source;
use super::varint::take_varint;

/// The records of one batch.
///
/// `batch` is exactly one batch; at most `decompressed_bytes_max` bytes come out of a compressed one. The CRC is not looked at.
pub fn records(batch: &[u8], decompressed_bytes_max: usize) -> Result<Records<'_>, RecordError> {
    let header = BatchHeader::parse(batch)?;
    let payload = batch
        .get(BATCH_HEADER_BYTES..header.size_bytes())
        .ok_or(RecordError::Truncated { got: batch.len(), expected: header.size_bytes() })?;
    let payload = match header.codec()? {
        Codec::None => Cow::Borrowed(payload),
        codec => Cow::Owned(codec.decompress(payload, decompressed_bytes_max)?),
    };
    Ok(Records { header, payload })
}

/// A batch's records, ready to be iterated over.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    header: BatchHeader,
    payload: Cow<'a, [u8]>,
}

impl Records<'_> {
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter { header: &self.header, rest: &self.payload, index: 0 }
    }
}

impl<'r> IntoIterator for &'r Records<'_> {
    type Item = Result<Record<'r>, RecordError>;
    type IntoIter = RecordIter<'r>;

    fn into_iter(self) -> RecordIter<'r> {
        self.iter()
    }
}

/// Iterates over a batch's records. A malformed record, a missing one, or bytes left behind the last one yield an error once, and
/// then nothing more.
#[derive(Clone, Debug)]
pub struct RecordIter<'r> {
    header: &'r BatchHeader,
    rest: &'r [u8],
    index: i32,
}

impl<'r> RecordIter<'r> {
    fn read_next(&mut self) -> Result<Record<'r>, RecordError> {
        let header = self.header;
        let malformed = |reason| RecordError::MalformedRecord { index: self.index, reason };
        let body = take_body(&mut self.rest).map_err(malformed)?;
        Record::read(body, |offset_delta, timestamp_delta| {
            (header.base_offset.wrapping_add(i64::from(offset_delta)), header.timestamp_of(timestamp_delta))
        })
        .map_err(malformed)
    }
}

impl<'r> Iterator for RecordIter<'r> {
    type Item = Result<Record<'r>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.header.record_count {
            let left = !std::mem::take(&mut self.rest).is_empty();
            return left.then_some(Err(RecordError::Invalid { reason: TOO_MANY }));
        }
        let record = self.read_next();
        self.index += 1;
        if record.is_err() {
            self.rest = &[];
            self.index = i32::MAX;
        }
        Some(record)
    }
}

pub(super) const TOO_FEW: &str = "there are fewer records than the batch says";
pub(super) const TOO_MANY: &str = "there is more behind the last record that the batch says";

/// Takes one record's body, without its length, off the front.
#[inline(always)]
pub(super) fn take_body<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    if rest.is_empty() {
        return Err(TOO_FEW);
    }
    let len = take_varint(rest).ok_or("its length is no varint")?;
    let len = usize::try_from(len).map_err(|_| "its length is negative")?;
    rest.span(len).ok_or("it is longer than what is left of the batch")
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, Codec};
    use super::*;
    use proptest::prelude::*;

    type Owned = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

    fn owned() -> impl Strategy<Value = Owned> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..200);
        let headers =
            prop::collection::vec((prop::collection::vec(any::<u8>(), 0..4), prop::option::of(bytes())), 0..4);
        (any::<i64>(), prop::option::of(bytes()), prop::option::of(bytes()), headers)
    }

    fn build(records: &[Owned], codec: Codec) -> Vec<u8> {
        let mut builder = BatchBuilder::new(codec);
        for (timestamp, key, value, headers) in records {
            let headers: Vec<_> = headers.iter().map(|(k, v)| (&k[..], v.as_deref())).collect();
            builder.push(*timestamp, key.as_deref(), value.as_deref(), &headers);
        }
        builder.finish(100, 0)
    }

    fn read(batch: &[u8]) -> Result<Vec<(i64, Owned)>, RecordError> {
        records(batch, 1 << 20)?
            .iter()
            .map(|record| {
                let record = record?;
                let headers = record.headers().map(|(k, v)| (k.to_vec(), v.map(<[u8]>::to_vec))).collect();
                let owned =
                    (record.timestamp, record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec), headers);
                Ok((record.offset, owned))
            })
            .collect()
    }

    proptest! {
        #[test]
        fn what_is_built_is_read(all in prop::collection::vec(owned(), 0..8), codec in 0i16..5) {
            let batch = build(&all, Codec::from_id(codec).unwrap());
            let expected: Vec<_> = (100i64..).zip(all).collect();
            prop_assert_eq!(read(&batch), Ok(expected));
        }

        #[test]
        fn damaged_batches_are_no_panic(all in prop::collection::vec(owned(), 1..4), at in any::<prop::sample::Index>(), with: u8) {
            let mut batch = build(&all, Codec::None);
            let at = at.index(batch.len());
            batch[at] = with;
            let _ = read(&batch);
        }
    }

    #[test]
    fn repeated_empty_and_binary_header_keys_are_kept() {
        let headers: [(&[u8], Option<&[u8]>); 4] =
            [(b"a", Some(b"1")), (b"a", None), (b"", Some(b"")), (b"\xff\xfe", Some(b"x"))];
        let mut builder = BatchBuilder::new(Codec::Lz4);
        builder.push(1, None, None, &headers);
        let batch = builder.finish(0, 0);
        let records = records(&batch, 1000).unwrap();
        let record = records.iter().next().unwrap().unwrap();
        assert_eq!(record.headers().collect::<Vec<_>>(), headers);
    }

    #[test]
    fn too_few_and_too_many_records_are_told_once() {
        let mut batch = build(&[(1, None, None, vec![]), (2, None, None, vec![])], Codec::None);
        batch[60] = 3;
        let told: Vec<_> =
            records(&batch, 0).unwrap().iter().map(|record| record.map(|record| record.offset)).collect();
        assert_eq!(told, [Ok(100), Ok(101), Err(RecordError::MalformedRecord { index: 2, reason: TOO_FEW })]);
        batch[60] = 1;
        let told: Vec<_> =
            records(&batch, 0).unwrap().iter().map(|record| record.map(|record| record.offset)).collect();
        assert_eq!(told, [Ok(100), Err(RecordError::Invalid { reason: TOO_MANY })]);
    }

    #[test]
    fn a_batch_with_append_time_gives_it_to_each_record() {
        let mut builder = BatchBuilder::new(Codec::None).with_append_time(77);
        builder.push(1, None, None, &[]).push(2, None, None, &[]);
        let batch = builder.finish(0, 0);
        let times: Vec<_> = records(&batch, 0).unwrap().iter().map(|record| record.unwrap().timestamp).collect();
        assert_eq!(times, [77, 77]);
    }

    #[test]
    fn decompression_is_bounded() {
        let batch = build(&[(1, None, Some(vec![0; 5000]), vec![])], Codec::Zstd);
        assert_eq!(records(&batch, 4999).unwrap_err(), RecordError::DecompressedTooLarge { bytes_max: 4999 });
    }
}
