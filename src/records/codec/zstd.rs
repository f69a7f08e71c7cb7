//! Zstandard (RFC 8878) as a stream of one or more frames. The window that a frame may ask for stays at the library's 128 MiB,
//! and is touched only as far as output really comes.

use std::io;

use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use super::Sink;

/// `compression.zstd.level` without a setting.
pub(super) const DEFAULT_LEVEL: i32 = 3;

/// The range that `compression.zstd.level` allows (KIP-390).
const LEVEL_MIN: i32 = -131_072;
const LEVEL_MAX: i32 = 22;

pub(in crate::records) type Reader<'a> = Decoder<'static, &'a [u8]>;

pub(super) fn reader(input: &[u8]) -> io::Result<Reader<'_>> {
    Decoder::with_buffer(input)
}

pub(in crate::records) type Writer = Encoder<'static, Sink>;

pub(super) fn writer(level: i32, sink: Sink) -> io::Result<Writer> {
    Encoder::new(sink, level.clamp(LEVEL_MIN, LEVEL_MAX))
}
