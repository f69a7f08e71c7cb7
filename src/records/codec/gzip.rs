//! gzip (RFC 1952) as a stream of one or more members. Bytes behind a member that begin no other are not looked at: so does Java,
//! and what a broker stores must mean the same to it and to its consumers.

use std::io::{self, Read};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use super::Sink;

/// "The library's choice", as `compression.gzip.level` spells it.
pub(super) const DEFAULT_LEVEL: i32 = -1;

const MEMBER_MAGIC: [u8; 2] = [0x1f, 0x8b];

pub(in crate::records) type Writer = GzEncoder<Sink>;

pub(super) fn writer(level: i32, sink: Sink) -> Writer {
    let level = match level {
        DEFAULT_LEVEL => Compression::default(),
        level => Compression::new(level.clamp(1, 9).unsigned_abs()),
    };
    GzEncoder::new(sink, level)
}

pub(in crate::records) struct Reader<'a> {
    member: GzDecoder<&'a [u8]>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Reader<'a> {
        Reader { member: GzDecoder::new(input) }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = self.member.read(buffer)?;
            let rest = *self.member.get_ref();
            if got > 0 || buffer.is_empty() || !rest.starts_with(&MEMBER_MAGIC) {
                return Ok(got);
            }
            self.member = GzDecoder::new(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Codec;

    #[test]
    fn members_behind_one_another_are_one_stream() {
        let member = |input: &[u8]| Codec::Gzip.compress(1, input).unwrap();
        let bytes = [member(b"one "), member(b""), member(b"two")].concat();
        assert_eq!(Codec::Gzip.decompress(&bytes, 100).unwrap(), b"one two");
        assert!(Codec::Gzip.decompress(&bytes[..bytes.len() - 1], 100).is_err());
    }

    #[test]
    fn what_stands_behind_the_last_member_is_not_looked_at() {
        let bytes = [&Codec::Gzip.compress(1, b"one").unwrap()[..], b"rubbish"].concat();
        assert_eq!(Codec::Gzip.decompress(&bytes, 100).unwrap(), b"one");
    }
}
