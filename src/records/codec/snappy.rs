//! Snappy in the two framings that clients write: xerial's (Java: a header, then length-prefixed blocks) and none at all (one raw
//! block). We write xerial's, which every client reads.

use std::io::{self, Read, Write};

use snap::raw::{Decoder, Encoder, decompress_len};

use super::{Sink, damaged};
use crate::records::cursor::{take_i32, take_slice};

const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];

/// Magic, version and lowest compatible version.
const XERIAL_HEADER_BYTES: usize = 16;
const XERIAL_VERSION: i32 = 1;

/// Input bytes of one block that we write, as Java's stream does.
const BLOCK_BYTES: usize = 32 * 1024;

/// A raw block grows by no more than this: its best element spends 3 bytes on 64. A block that claims more lies.
const EXPANSION_MAX: usize = 22;

/// Writes xerial's framing. Input is gathered into whole blocks.
pub(in crate::records) struct Writer {
    sink: Sink,
    encoder: Encoder,
    block: Vec<u8>,
}

impl Writer {
    pub(super) fn new(mut sink: Sink) -> io::Result<Writer> {
        sink.write_all(&XERIAL_MAGIC)?;
        sink.write_all(&XERIAL_VERSION.to_be_bytes())?;
        sink.write_all(&XERIAL_VERSION.to_be_bytes())?;
        Ok(Writer { sink, encoder: Encoder::new(), block: Vec::with_capacity(BLOCK_BYTES) })
    }

    pub(super) fn finish(mut self) -> io::Result<Sink> {
        self.end_block()?;
        Ok(self.sink)
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let compressed = self.encoder.compress_vec(&self.block).map_err(|_| damaged("snappy block"))?;
        let len = u32::try_from(compressed.len()).map_err(|_| damaged("snappy block length"))?;
        self.block.clear();
        self.sink.write_all(&len.to_be_bytes())?;
        self.sink.write_all(&compressed)
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = BLOCK_BYTES.saturating_sub(self.block.len());
        let taken = bytes.len().min(room);
        self.block.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        if taken == room {
            self.end_block()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(in crate::records) struct Reader<'a> {
    rest: &'a [u8],
    xerial: bool,
    block: Vec<u8>,
    position: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Reader<'a> {
        let xerial = input.starts_with(&XERIAL_MAGIC) && input.len() >= XERIAL_HEADER_BYTES;
        Reader { rest: input, xerial, block: Vec::new(), position: 0 }
    }

    /// The next compressed block; `None` at the end.
    fn next_block(&mut self) -> io::Result<Option<&'a [u8]>> {
        if !self.xerial {
            return Ok(Some(std::mem::take(&mut self.rest)).filter(|block| !block.is_empty()));
        }
        // A header may come again where streams were put behind one another.
        while self.rest.starts_with(&XERIAL_MAGIC) {
            take_slice(&mut self.rest, XERIAL_HEADER_BYTES).ok_or_else(|| damaged("snappy header"))?;
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        let len = take_i32(&mut self.rest).and_then(|len| usize::try_from(len).ok());
        let block = len.and_then(|len| take_slice(&mut self.rest, len));
        block.map(Some).ok_or_else(|| damaged("snappy block length"))
    }

    fn fill(&mut self) -> io::Result<bool> {
        let Some(compressed) = self.next_block()? else {
            return Ok(false);
        };
        let len = decompress_len(compressed).map_err(|_| damaged("snappy length"))?;
        if len > compressed.len().saturating_mul(EXPANSION_MAX) {
            return Err(damaged("a snappy block claims more than it can hold"));
        }
        self.block.clear();
        self.block.resize(len, 0);
        self.position = 0;
        let got = Decoder::new().decompress(compressed, &mut self.block).map_err(|_| damaged("snappy data"))?;
        self.block.truncate(got);
        Ok(true)
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let mut ready = self.block.get(self.position..).unwrap_or_default();
            if !ready.is_empty() {
                let got = ready.read(buffer)?;
                self.position += got;
                return Ok(got);
            }
            if !self.fill()? {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Codec;
    use super::*;

    fn compress(input: &[u8]) -> Vec<u8> {
        Codec::Snappy.compress(0, input).unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<u8>, crate::records::RecordError> {
        Codec::Snappy.decompress(bytes, 1_000_000)
    }

    #[test]
    fn a_raw_block_without_framing_is_read() {
        let raw = Encoder::new().compress_vec(&[7u8; 5000]).unwrap();
        assert_eq!(read(&raw).unwrap(), [7u8; 5000]);
    }

    #[test]
    fn our_framing_is_xerials() {
        let bytes = compress(&vec![1u8; BLOCK_BYTES + 1]);
        assert_eq!(&bytes[..16], b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
        assert_eq!(read(&bytes).unwrap().len(), BLOCK_BYTES + 1);
    }

    #[test]
    fn streams_behind_one_another_are_one() {
        let bytes = [compress(b"one "), compress(b"two")].concat();
        assert_eq!(read(&bytes).unwrap(), b"one two");
    }

    #[test]
    fn a_block_that_claims_gigabytes_is_refused_before_memory_is_taken() {
        let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
        assert!(read(&claim).is_err());
        let framed = [&compress(b"")[..], &[0, 0, 0, 6], &claim].concat();
        assert!(read(&framed).is_err());
    }

    #[test]
    fn the_densest_block_is_within_the_bound() {
        let zeros = vec![0u8; 1_000_000];
        let raw = Encoder::new().compress_vec(&zeros).unwrap();
        assert_eq!(read(&raw).unwrap(), zeros);
    }

    #[test]
    fn negative_and_overlong_block_lengths_are_refused() {
        for len in [-1i32, i32::MIN, i32::MAX, 100] {
            let bytes = [&compress(b"")[..], &len.to_be_bytes(), b"xyz"].concat();
            assert!(read(&bytes).is_err(), "{len}");
        }
    }
}
