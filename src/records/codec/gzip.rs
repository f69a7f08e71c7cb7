//! gzip (RFC 1952) as a stream of one or more members.

use std::io::{self, Write};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

/// "The library's choice", as `compression.gzip.level` spells it.
pub(super) const DEFAULT_LEVEL: i32 = -1;

pub(in crate::records) type Reader<'a> = MultiGzDecoder<&'a [u8]>;

pub(super) fn compress(level: i32, input: &[u8]) -> io::Result<Vec<u8>> {
    let level = match level {
        DEFAULT_LEVEL => Compression::default(),
        level => Compression::new(level.clamp(1, 9).unsigned_abs()),
    };
    let mut encoder = GzEncoder::new(Vec::with_capacity(input.len() / 2), level);
    encoder.write_all(input)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::super::Codec;
    use super::*;

    #[test]
    fn members_behind_one_another_are_one_stream() {
        let bytes = [compress(1, b"one ").unwrap(), compress(9, b"two").unwrap()].concat();
        assert_eq!(Codec::Gzip.decompress(&bytes, 100).unwrap(), b"one two");
    }
}
