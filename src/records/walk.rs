//! Walking the records of a batch without keeping them: their number must be what the header says, and each must be whole. A
//! compressed batch is walked while it is decompressed, in one small buffer, so a bomb costs time up to a bound but no memory.

use std::io::{ErrorKind, Read, Write};

use super::codec::{Codec, Reader, Writer};
use super::error::RecordError;
use super::iterate::{TOO_FEW, TOO_MANY, take_body};
use super::record::{CUT, Fault, Fields, read_whole};
use super::source::Source;
use super::varint::take_varint;

/// Decompressed bytes that are held at once. Records up to this size are walked as slices.
const BUFFER_BYTES: usize = 32 * 1024;

/// What the walk tells of each record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    pub has_key: bool,
}

impl<Span: Copy> From<Fields<Span>> for Seen {
    #[inline(always)]
    fn from(fields: Fields<Span>) -> Seen {
        Seen {
            timestamp_delta: fields.timestamp_delta,
            offset_delta: fields.offset_delta,
            has_key: fields.key.is_some(),
        }
    }
}

/// Walks `count` records that lie in a slice. `visit` sees each with its index, and may find fault with it.
#[inline]
pub(super) fn walk_slice(
    mut payload: &[u8],
    count: i32,
    mut visit: impl FnMut(i32, Seen) -> Result<(), Fault>,
) -> Result<(), RecordError> {
    for index in 0..count {
        let seen = take_body(&mut payload).and_then(|mut body| read_whole(&mut body));
        seen.and_then(|fields| visit(index, fields.into()))
            .map_err(|reason| RecordError::MalformedRecord { index, reason })?;
    }
    if !payload.is_empty() {
        return Err(RecordError::Invalid { reason: TOO_MANY });
    }
    Ok(())
}

/// What a walk over compressed records may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamLimits {
    /// Bytes of one record, `max.decompressed.message.bytes`.
    pub record_bytes_max: usize,
    /// Bytes that may come out of the whole batch.
    pub output_bytes_max: usize,
    /// What to say when the copy does not fit.
    pub copy_bytes_max: usize,
}

/// Walks `count` records that `payload` decompresses to, and writes all that comes out into `copy`.
pub(super) fn walk_compressed(
    codec: Codec,
    payload: &[u8],
    count: i32,
    limits: StreamLimits,
    copy: Option<&mut Writer>,
    mut visit: impl FnMut(i32, Seen) -> Result<(), Fault>,
) -> Result<(), RecordError> {
    let reader = codec.reader(payload).map_err(|_| RecordError::Decompress { codec })?;
    let mut stream = Stream::new(reader, codec, limits, copy);
    for index in 0..count {
        let seen = stream.next_record().and_then(|seen| visit(index, seen));
        if let Err(reason) = seen {
            return Err(stream.failure.unwrap_or(RecordError::MalformedRecord { index, reason }));
        }
    }
    let ended = stream.is_empty();
    match stream.failure {
        Some(failure) => Err(failure),
        None if !ended => Err(RecordError::Invalid { reason: TOO_MANY }),
        None => Ok(()),
    }
}

/// Decompressed bytes as they come, with a buffer of fixed size.
struct Stream<'a, 'w> {
    reader: Reader<'a>,
    codec: Codec,
    limits: StreamLimits,
    copy: Option<&'w mut Writer>,
    buffer: Box<[u8]>,
    /// What of the buffer has not been taken yet.
    start: usize,
    end: usize,
    output_bytes: usize,
    /// Why nothing more comes, if not because the end was reached.
    failure: Option<RecordError>,
}

impl<'a, 'w> Stream<'a, 'w> {
    fn new(reader: Reader<'a>, codec: Codec, limits: StreamLimits, copy: Option<&'w mut Writer>) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Stream { reader, codec, limits, copy, buffer, start: 0, end: 0, output_bytes: 0, failure: None }
    }

    fn next_record(&mut self) -> Result<Seen, Fault> {
        if self.is_empty() {
            return Err(TOO_FEW);
        }
        let len = take_varint(self).ok_or("its length is no varint")?;
        let len = usize::try_from(len).map_err(|_| "its length is negative")?;
        if len > self.limits.record_bytes_max {
            return Err(self.fail(RecordError::DecompressedTooLarge { bytes_max: self.limits.record_bytes_max }));
        }
        if self.gather(len) {
            let mut body = self.buffer.get(self.start..self.start + len).ok_or(CUT)?;
            self.start += len;
            return read_whole(&mut body).map(Seen::from);
        }
        read_whole(&mut Body { stream: self, left: len }).map(Seen::from)
    }

    /// Whether the next `len` bytes lie in the buffer, after getting as many as fit.
    fn gather(&mut self, len: usize) -> bool {
        if len > self.buffer.len() {
            return false;
        }
        if self.buffer.len() - self.start < len {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end - self.start < len {
            if !self.read_more() {
                return false;
            }
        }
        true
    }

    /// Reads behind what is in the buffer; `false` at the end and after a failure.
    fn read_more(&mut self) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let Some(room) = self.buffer.get_mut(self.end..) else {
            return false;
        };
        match self.reader.read(room) {
            Ok(0) => false,
            Ok(got) => self.take_in(got),
            Err(_) => {
                self.fail(RecordError::Decompress { codec: self.codec });
                false
            }
        }
    }

    fn take_in(&mut self, got: usize) -> bool {
        let fresh = self.end..self.end + got;
        self.output_bytes = self.output_bytes.saturating_add(got);
        if self.output_bytes > self.limits.output_bytes_max {
            self.fail(RecordError::DecompressedTooLarge { bytes_max: self.limits.output_bytes_max });
            return false;
        }
        if let (Some(copy), Some(fresh)) = (&mut self.copy, self.buffer.get(fresh.clone()))
            && let Err(error) = copy.write_all(fresh)
        {
            let failure = copy_failure(&error, self.codec, self.limits.copy_bytes_max);
            self.fail(failure);
            return false;
        }
        self.end = fresh.end;
        true
    }

    /// Notes the first failure; what it returns is only there to stop the walk.
    fn fail(&mut self, failure: RecordError) -> Fault {
        self.failure.get_or_insert(failure);
        "the stream of records failed"
    }

    fn skip(&mut self, mut len: usize) -> Option<()> {
        loop {
            let taken = len.min(self.end - self.start);
            self.start += taken;
            len -= taken;
            if len == 0 {
                return Some(());
            }
            if self.is_empty() {
                return None;
            }
        }
    }
}

impl Source for Stream<'_, '_> {
    type Span = ();

    #[inline]
    fn byte(&mut self) -> Option<u8> {
        if self.is_empty() {
            return None;
        }
        let byte = *self.buffer.get(self.start)?;
        self.start += 1;
        Some(byte)
    }

    fn span(&mut self, len: usize) -> Option<()> {
        self.skip(len)
    }

    #[inline]
    fn is_empty(&mut self) -> bool {
        if self.start < self.end {
            return false;
        }
        (self.start, self.end) = (0, 0);
        !self.read_more()
    }
}

/// One record's body in a stream, for records larger than the buffer.
struct Body<'s, 'a, 'w> {
    stream: &'s mut Stream<'a, 'w>,
    left: usize,
}

impl Source for Body<'_, '_, '_> {
    type Span = ();

    fn byte(&mut self) -> Option<u8> {
        self.left = self.left.checked_sub(1)?;
        self.stream.byte()
    }

    fn span(&mut self, len: usize) -> Option<()> {
        self.left = self.left.checked_sub(len)?;
        self.stream.skip(len)
    }

    fn is_empty(&mut self) -> bool {
        self.left == 0
    }
}

/// What it means that compressed bytes could not be written to their bounded sink.
pub(super) fn copy_failure(error: &std::io::Error, codec: Codec, bytes_max: usize) -> RecordError {
    match error.kind() {
        ErrorKind::StorageFull => RecordError::TooLarge { bytes_max },
        _ => RecordError::Compress { codec },
    }
}
