//! One record: its fields in their order, and the view of it that readers get. Header keys may repeat, be empty or be no UTF-8:
//! they are kept as they are.

use super::source::Source;
use super::varint::{take_varint, take_varlong};
use crate::base::{Offset, TimestampMs};

/// What is wrong with a record, for [`super::RecordError::MalformedRecord`].
pub(super) type Fault = &'static str;

pub(super) const CUT: Fault = "its bytes end inside a field";

/// The fields in front of a record's headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<Span> {
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    pub key: Option<Span>,
    pub value: Option<Span>,
    pub header_count: i32,
}

impl<Span: Copy> Fields<Span> {
    /// Reads them off the front of a record's body, which is what its length counts.
    #[inline(always)]
    pub fn read<S: Source<Span = Span>>(body: &mut S) -> Result<Fields<Span>, Fault> {
        body.byte().ok_or(CUT)?; // attributes: none are defined, and Kafka does not look at them either
        let fields = Fields {
            timestamp_delta: take_varlong(body).ok_or(CUT)?,
            offset_delta: take_varint(body).ok_or(CUT)?,
            key: take_nullable(body)?,
            value: take_nullable(body)?,
            header_count: take_varint(body).ok_or(CUT)?,
        };
        if fields.header_count < 0 {
            return Err("its number of headers is negative");
        }
        Ok(fields)
    }
}

/// Reads a whole record and checks that nothing is left behind its headers.
#[inline(always)]
pub(super) fn read_whole<S: Source>(body: &mut S) -> Result<Fields<S::Span>, Fault> {
    let fields = Fields::read(body)?;
    skip_headers(body, fields.header_count)?;
    Ok(fields)
}

/// Walks `count` headers, behind which the record must end.
#[inline(always)]
fn skip_headers<S: Source>(body: &mut S, count: i32) -> Result<(), Fault> {
    for _ in 0..count {
        take_header(body)?;
    }
    if !body.is_empty() {
        return Err("it is longer than its fields");
    }
    Ok(())
}

#[inline(always)]
fn take_nullable<S: Source>(body: &mut S) -> Result<Option<S::Span>, Fault> {
    match usize::try_from(take_varint(body).ok_or(CUT)?) {
        Ok(len) => body.span(len).map(Some).ok_or(CUT),
        // Any negative length means null, as in Kafka.
        Err(_) => Ok(None),
    }
}

fn take_header<S: Source>(body: &mut S) -> Result<(S::Span, Option<S::Span>), Fault> {
    let key = take_nullable(body)?.ok_or("a header's key is null")?;
    Ok((key, take_nullable(body)?))
}

/// A record as readers see it; everything borrows from the batch or its decompressed records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub offset: Offset,
    /// The offset less the batch's base offset.
    pub offset_delta: i32,
    pub timestamp: TimestampMs,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    headers: Headers<'a>,
}

impl<'a> Record<'a> {
    /// Reads a record's body. `place` tells offset and timestamp from the deltas.
    pub(super) fn read(
        mut body: &'a [u8],
        place: impl FnOnce(i32, i64) -> (Offset, TimestampMs),
    ) -> Result<Record<'a>, Fault> {
        let fields = Fields::read(&mut body)?;
        skip_headers(&mut { body }, fields.header_count)?;
        let (offset, timestamp) = place(fields.offset_delta, fields.timestamp_delta);
        let headers = Headers { rest: body, left: fields.header_count };
        Ok(Record {
            offset,
            offset_delta: fields.offset_delta,
            timestamp,
            key: fields.key,
            value: fields.value,
            headers,
        })
    }

    /// The headers in their order: key, and value unless it is null.
    pub fn headers(&self) -> Headers<'a> {
        self.headers.clone()
    }
}

/// Iterates over a record's headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    /// Walked once already when the record was read, so that every header is there whole.
    rest: &'a [u8],
    left: i32,
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 {
            return None;
        }
        self.left -= 1;
        take_header(&mut self.rest).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(0);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Headers<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> Result<Record<'_>, Fault> {
        Record::read(body, |delta, time| (i64::from(delta), time))
    }

    #[test]
    fn fields_are_read_in_their_order() {
        let record = read(&[0, 6, 4, 2, b'k', 4, b'v', b'w', 4, 2, b'h', 1, 0, 0]).unwrap();
        assert_eq!((record.offset, record.timestamp), (2, 3));
        assert_eq!((record.key, record.value), (Some(&b"k"[..]), Some(&b"vw"[..])));
        let headers: Vec<_> = record.headers().collect();
        assert_eq!(headers, [(&b"h"[..], None), (&b""[..], Some(&b""[..]))]);
        assert_eq!(record.headers().len(), 2);
    }

    #[test]
    fn any_negative_length_of_key_or_value_is_null() {
        let record = read(&[0x7f, 0, 0, 9, 1, 0]).unwrap();
        assert_eq!((record.key, record.value), (None, None));
    }

    #[test]
    fn malformed_records_are_named() {
        let cases: [(&[u8], Fault); 8] = [
            (&[], CUT),
            (&[0, 0, 0], CUT),
            (&[0, 0, 0, 0x20, b'k', 0], CUT),
            (&[0, 0, 0, 1, 1, 1], "its number of headers is negative"),
            (&[0, 0, 0, 1, 1, 10], CUT),
            (&[0, 0, 0, 1, 1, 2, 1, 0], "a header's key is null"),
            (&[0, 0, 0, 1, 1, 0, 5], "it is longer than its fields"),
            (&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0], CUT),
        ];
        for (body, fault) in cases {
            assert_eq!(read(body), Err(fault), "{body:?}");
        }
    }
}
