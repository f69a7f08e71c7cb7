//! The LZ4 frame format in Kafka's flavour: version 1, independent blocks, no checksums but that of the header. Java's reader
//! takes no linked blocks, so we take none either: what we store must be readable by every consumer.

use std::io::{self, Read};

use lz4::liblz4::{BlockChecksum, ContentChecksum};
use lz4::{BlockMode, BlockSize, Decoder, Encoder, EncoderBuilder};

use super::{Sink, damaged};

/// `compression.lz4.level` without a setting. As in Kafka it means the fast compressor; any other level means the high one.
pub(super) const DEFAULT_LEVEL: i32 = 9;

/// What the high compressor knows; Kafka allows 17 and gets 12.
const HIGH_LEVEL_MAX: i32 = 12;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const VERSION_MASK: u8 = 0b1100_0000;
const VERSION: u8 = 0b0100_0000;
const INDEPENDENT_BLOCKS: u8 = 0b0010_0000;

pub(in crate::records) type Writer = Encoder<Sink>;

pub(super) fn writer(level: i32, sink: Sink) -> io::Result<Writer> {
    let level = if level == DEFAULT_LEVEL { 0 } else { level.clamp(1, HIGH_LEVEL_MAX) };
    EncoderBuilder::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Independent)
        .block_checksum(BlockChecksum::NoBlockChecksum)
        .checksum(ContentChecksum::NoChecksum)
        .level(level.unsigned_abs())
        .build(sink)
}

/// Reads one frame; what stands behind it is not looked at, as in Kafka.
pub(in crate::records) struct Reader<'a> {
    /// Taken at the end, to ask whether the frame was whole.
    decoder: Option<Decoder<&'a [u8]>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> io::Result<Reader<'a>> {
        let Some(&[a, b, c, d, flags]) = input.first_chunk::<5>() else {
            return Err(damaged("an LZ4 frame begins with 5 bytes at least"));
        };
        if [a, b, c, d] != MAGIC || flags & VERSION_MASK != VERSION || flags & INDEPENDENT_BLOCKS == 0 {
            return Err(damaged("not an LZ4 frame of version 1 with independent blocks"));
        }
        Ok(Reader { decoder: Some(Decoder::new(input)?) })
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(0);
        };
        let got = decoder.read(buffer)?;
        if got == 0
            && !buffer.is_empty()
            && let Some(decoder) = self.decoder.take()
        {
            // The decoder ends quietly where its input ends; only `finish` tells whether that was the frame's end.
            decoder.finish().1.map_err(|_| damaged("the LZ4 frame has no end"))?;
        }
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::Codec;
    use super::*;

    #[test]
    fn frames_have_kafkas_descriptor() {
        let frame = Codec::Lz4.compress(DEFAULT_LEVEL, b"abc").unwrap();
        // version 1, independent blocks, no checksums; blocks of 64 KiB
        assert_eq!(&frame[..6], &[0x04, 0x22, 0x4d, 0x18, 0x60, 0x40]);
    }

    #[test]
    fn linked_blocks_are_refused() {
        let mut encoder = EncoderBuilder::new().block_mode(BlockMode::Linked).build(Vec::new()).unwrap();
        encoder.write_all(b"abc").unwrap();
        let (frame, result) = encoder.finish();
        result.unwrap();
        assert!(Codec::Lz4.decompress(&frame, 100).is_err());
    }

    #[test]
    fn checksums_and_larger_blocks_are_read() {
        let mut encoder = EncoderBuilder::new()
            .block_size(BlockSize::Max4MB)
            .block_mode(BlockMode::Independent)
            .content_size(1_000_000)
            .build(Vec::new())
            .unwrap();
        let input: Vec<u8> = (0..1_000_000u32).map(|i| (i / 7) as u8).collect();
        encoder.write_all(&input).unwrap();
        let (frame, result) = encoder.finish();
        result.unwrap();
        assert_eq!(Codec::Lz4.decompress(&frame, input.len()).unwrap(), input);
    }
}
