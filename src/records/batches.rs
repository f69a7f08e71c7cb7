//! Cutting a byte slice into its batches. What stands at the end without being a whole batch is left alone: fetches and torn
//! writes end like that.

use super::error::RecordError;
use super::header::{BATCH_HEADER_BYTES, BatchHeader};

/// Iterates over the whole batches of a slice: each with its header and exactly its bytes.
///
/// A partial batch at the end ends the iteration quietly, and [`Batches::rest`] returns it. A header that is none (wrong magic,
/// impossible length) yields its error once, and then nothing more.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
    failed: bool,
}

impl<'a> Batches<'a> {
    pub fn new(bytes: &'a [u8]) -> Batches<'a> {
        Batches { rest: bytes, failed: false }
    }

    /// What has not been cut yet; after the last batch, the partial one behind it.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<(BatchHeader, &'a [u8]), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.rest.len() < BATCH_HEADER_BYTES {
            return None;
        }
        match BatchHeader::parse(self.rest) {
            Ok(header) => {
                let (batch, rest) = self.rest.split_at_checked(header.size_bytes())?;
                self.rest = rest;
                Some(Ok((header, batch)))
            }
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, Codec};
    use super::*;

    fn batch(base_offset: i64, values: &[&str]) -> Vec<u8> {
        let mut builder = BatchBuilder::new(Codec::None);
        for value in values {
            builder.push(1000, None, Some(value.as_bytes()), &[]);
        }
        builder.finish(base_offset, 3)
    }

    #[test]
    fn whole_batches_are_cut_and_a_partial_one_is_left() {
        let (one, two) = (batch(0, &["a", "b"]), batch(2, &["c"]));
        let mut bytes = [one.clone(), two.clone()].concat();
        bytes.extend_from_slice(&one[..70]);
        let mut batches = Batches::new(&bytes);
        let (first, first_bytes) = batches.next().unwrap().unwrap();
        let (second, second_bytes) = batches.next().unwrap().unwrap();
        assert_eq!((first.base_offset, first_bytes), (0, &one[..]));
        assert_eq!((second.base_offset, second_bytes), (2, &two[..]));
        assert_eq!(batches.next(), None);
        assert_eq!(batches.rest(), &one[..70]);
    }

    #[test]
    fn a_broken_header_is_told_once() {
        let mut bytes = [batch(0, &["a"]), batch(1, &["b"])].concat();
        let second = batch(0, &["a"]).len();
        bytes[second + 16] = 9;
        let mut batches = Batches::new(&bytes);
        assert!(batches.next().unwrap().is_ok());
        assert_eq!(batches.next(), Some(Err(RecordError::UnknownMagic { magic: 9 })));
        assert_eq!(batches.next(), None);
    }
}
