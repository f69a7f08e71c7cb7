//! The five codecs, both ways (KIP-110, KIP-390, KIP-780). Compressed data comes from strangers: it is read as a stream, so that
//! memory follows what really comes out and never what a frame header claims.

mod gzip;
mod lz4;
mod sink;
mod snappy;
mod zstd;

use std::fmt;
use std::io::{self, Read, Write};

use super::error::RecordError;
pub(super) use sink::Sink;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Codec {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Codec {
    /// The codec by the number in a batch's attributes.
    pub fn from_id(id: i16) -> Result<Codec, RecordError> {
        match id {
            0 => Ok(Codec::None),
            1 => Ok(Codec::Gzip),
            2 => Ok(Codec::Snappy),
            3 => Ok(Codec::Lz4),
            4 => Ok(Codec::Zstd),
            id => Err(RecordError::UnknownCodec { id }),
        }
    }

    pub fn id(self) -> i16 {
        self as i16
    }

    /// The codec by its name in `compression.type`; `producer` and `uncompressed` are no codecs.
    pub fn from_name(name: &str) -> Option<Codec> {
        [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd]
            .into_iter()
            .find(|codec| codec.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Gzip => "gzip",
            Codec::Snappy => "snappy",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }

    /// The level that a topic without a level of its own uses, in the codec's own scale; 0 where there are no levels.
    pub fn default_level(self) -> i32 {
        match self {
            Codec::None | Codec::Snappy => 0,
            Codec::Gzip => gzip::DEFAULT_LEVEL,
            Codec::Lz4 => lz4::DEFAULT_LEVEL,
            Codec::Zstd => zstd::DEFAULT_LEVEL,
        }
    }

    /// Compresses `input` in the framing that Kafka's clients write. A level outside the codec's range counts as the nearest one in
    /// it. Fails only when the codec's library does, short of memory.
    pub fn compress(self, level: i32, input: &[u8]) -> Result<Vec<u8>, RecordError> {
        let into = Sink::new(Vec::with_capacity(input.len() / 2 + SPARE_BYTES), usize::MAX);
        let compressed = self.writer(level, into).and_then(|mut writer| {
            writer.write_all(input)?;
            writer.finish()
        });
        compressed.map(Sink::into_bytes).map_err(|_| RecordError::Compress { codec: self })
    }

    /// A writer that compresses into `sink`.
    pub(super) fn writer(self, level: i32, sink: Sink) -> io::Result<Writer> {
        Ok(match self {
            Codec::None => Writer::Plain(sink),
            Codec::Gzip => Writer::Gzip(gzip::writer(level, sink)),
            Codec::Snappy => Writer::Snappy(Box::new(snappy::Writer::new(sink)?)),
            Codec::Lz4 => Writer::Lz4(lz4::writer(level, sink)?),
            Codec::Zstd => Writer::Zstd(zstd::writer(level, sink)?),
        })
    }

    /// Decompresses all of `input`, at most `output_bytes_max` bytes. Memory grows with what comes out.
    pub fn decompress(self, input: &[u8], output_bytes_max: usize) -> Result<Vec<u8>, RecordError> {
        let failed = |_| RecordError::Decompress { codec: self };
        let mut output = Vec::new();
        let limit = u64::try_from(output_bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        self.reader(input).map_err(failed)?.take(limit).read_to_end(&mut output).map_err(failed)?;
        if output.len() > output_bytes_max {
            return Err(RecordError::DecompressedTooLarge { bytes_max: output_bytes_max });
        }
        Ok(output)
    }

    /// A reader of what `input` decompresses to. It holds a bounded amount of memory, and ends with an error where `input` ends too
    /// early or is damaged.
    pub(super) fn reader(self, input: &[u8]) -> io::Result<Reader<'_>> {
        Ok(match self {
            Codec::None => Reader::Plain(input),
            Codec::Gzip => Reader::Gzip(gzip::Reader::new(input)),
            Codec::Snappy => Reader::Snappy(snappy::Reader::new(input)),
            Codec::Lz4 => Reader::Lz4(lz4::Reader::new(input)?),
            Codec::Zstd => Reader::Zstd(zstd::reader(input)?),
        })
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Decompressed bytes as a stream.
pub(super) enum Reader<'a> {
    Plain(&'a [u8]),
    Gzip(gzip::Reader<'a>),
    Snappy(snappy::Reader<'a>),
    Lz4(lz4::Reader<'a>),
    Zstd(zstd::Reader<'a>),
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Reader::Plain(input) => input.read(buffer),
            Reader::Gzip(reader) => reader.read(buffer),
            Reader::Snappy(reader) => reader.read(buffer),
            Reader::Lz4(reader) => reader.read(buffer),
            Reader::Zstd(reader) => reader.read(buffer),
        }
    }
}

/// Compresses what is written to it.
pub(super) enum Writer {
    Plain(Sink),
    Gzip(gzip::Writer),
    Snappy(Box<snappy::Writer>),
    Lz4(lz4::Writer),
    Zstd(zstd::Writer),
}

impl Writer {
    /// Writes the end of the compressed stream and gives the sink back.
    pub fn finish(self) -> io::Result<Sink> {
        match self {
            Writer::Plain(sink) => Ok(sink),
            Writer::Gzip(writer) => writer.finish(),
            Writer::Snappy(writer) => writer.finish(),
            Writer::Lz4(writer) => {
                let (sink, result) = writer.finish();
                result.map(|()| sink)
            }
            Writer::Zstd(writer) => writer.finish(),
        }
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Writer::Plain(sink) => sink.write(bytes),
            Writer::Gzip(writer) => writer.write(bytes),
            Writer::Snappy(writer) => writer.write(bytes),
            Writer::Lz4(writer) => writer.write(bytes),
            Writer::Zstd(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Room for what a codec puts around its data.
const SPARE_BYTES: usize = 64;

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    #[test]
    fn ids_and_names_are_kafkas() {
        for (codec, id) in CODECS.into_iter().zip(0i16..) {
            assert_eq!((codec.id(), Codec::from_id(id)), (id, Ok(codec)));
            assert_eq!(Codec::from_name(codec.name()), Some(codec));
        }
        for id in [-1, 5, 6, 7] {
            assert_eq!(Codec::from_id(id), Err(RecordError::UnknownCodec { id }));
        }
        assert_eq!(Codec::from_name("producer"), None);
    }

    #[test]
    fn every_level_that_a_topic_may_ask_for_works() {
        let input = "a level, ".repeat(500).into_bytes();
        let levels = [
            (Codec::Gzip, &[-1, 1, 6, 9][..]),
            (Codec::Lz4, &[1, 2, 3, 9, 12, 17]),
            (Codec::Zstd, &[-131_072, -5, 0, 1, 3, 22]),
            (Codec::Snappy, &[0]),
            (Codec::None, &[0]),
        ];
        for (codec, levels) in levels {
            for &level in levels.iter().chain(&[i32::MIN, i32::MAX]) {
                let compressed = codec.compress(level, &input).unwrap();
                assert_eq!(codec.decompress(&compressed, input.len()).unwrap(), input, "{codec} {level}");
            }
        }
    }

    #[test]
    fn output_is_bounded_to_the_byte() {
        let input = vec![0u8; 300_000];
        for codec in CODECS {
            let compressed = codec.compress(codec.default_level(), &input).unwrap();
            assert_eq!(codec.decompress(&compressed, 300_000).map(|out| out.len()), Ok(300_000), "{codec}");
            assert_eq!(
                codec.decompress(&compressed, 299_999),
                Err(RecordError::DecompressedTooLarge { bytes_max: 299_999 }),
                "{codec}"
            );
        }
    }

    #[test]
    fn input_cut_anywhere_is_an_error() {
        let input: Vec<u8> = (0..150_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            let compressed = codec.compress(codec.default_level(), &input).unwrap();
            for keep in (17..compressed.len()).step_by(4_999).chain([compressed.len() - 1]) {
                let result = codec.decompress(&compressed[..keep], usize::MAX);
                assert_eq!(result, Err(RecordError::Decompress { codec }), "{codec} {keep}");
            }
        }
    }

    proptest! {
        #[test]
        fn codecs_round_trip(input in prop::collection::vec(0u8..8, 0..5_000), which in 0usize..5) {
            let codec = CODECS[which];
            let compressed = codec.compress(codec.default_level(), &input).unwrap();
            prop_assert_eq!(codec.decompress(&compressed, input.len()), Ok(input));
        }

        #[test]
        fn garbage_is_no_panic_and_stays_bounded(input: Vec<u8>, which in 0usize..5) {
            if let Ok(output) = CODECS[which].decompress(&input, 100_000) {
                prop_assert!(output.len() <= 100_000);
            }
        }

        #[test]
        fn a_flipped_bit_is_no_panic(len in 1usize..3_000, flip in any::<prop::sample::Index>(), which in 1usize..5) {
            let codec = CODECS[which];
            let input: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let mut compressed = codec.compress(codec.default_level(), &input).unwrap();
            let bit = flip.index(compressed.len() * 8);
            compressed[bit / 8] ^= 1 << (bit % 8);
            let _ = codec.decompress(&compressed, 10_000);
        }
    }
}
