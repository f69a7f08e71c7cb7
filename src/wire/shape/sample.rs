//! Writes valid bodies from the shape table, knowing nothing of any decoder: the other side of the check, for tests, fuzz seeds and
//! for asking every advertised version of a running broker.

use super::{Field, Kind, Scalar};
use crate::wire::table::Api;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Null where null is legal, else empty or zero; no tagged fields.
    Minimal,
    /// Nothing null, two elements in every array, every tagged field, and one tagged field that nobody knows.
    Full,
}

/// The tag that [`Fill::Full`] adds to every structure.
pub const UNKNOWN_TAG: u32 = 4242;

/// A body of `api` in `version`.
pub fn body(api: &Api, version: i16, fill: Fill) -> Vec<u8> {
    let mut writer = Writer { bytes: Vec::new(), version, flexible: api.is_flexible(version), fill };
    writer.structure(api.request);
    writer.bytes
}

/// A whole frame, length prefix included, with the client id `sample`.
pub fn frame(api: &Api, version: i16, correlation_id: i32, fill: Fill) -> Vec<u8> {
    const CLIENT: &[u8] = b"\x00\x06sample";
    let mut content = [api.key.to_be_bytes(), version.to_be_bytes()].concat();
    content.extend(correlation_id.to_be_bytes());
    content.extend(CLIENT);
    if api.is_flexible(version) {
        content.push(0);
    }
    content.extend(body(api, version, fill));
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), content.as_slice()].concat()
}

struct Writer {
    bytes: Vec<u8>,
    version: i16,
    flexible: bool,
    fill: Fill,
}

impl Writer {
    fn structure(&mut self, fields: &'static [Field]) {
        let version = self.version;
        let present = || fields.iter().filter(move |field| field.is_in(version));
        for field in present().filter(|field| field.presence.tag.is_none()) {
            self.field(field);
        }
        if !self.flexible {
            return;
        }
        if self.fill == Fill::Minimal {
            return self.bytes.push(0);
        }
        let mut tagged: Vec<_> = present().filter_map(|field| Some((field.presence.tag?, field))).collect();
        tagged.sort_by_key(|(tag, _)| *tag);
        self.varint(tagged.len() + 1);
        for (tag, field) in tagged {
            self.varint(tag as usize);
            let outer = std::mem::take(&mut self.bytes);
            self.field(field);
            let content = std::mem::replace(&mut self.bytes, outer);
            self.varint(content.len());
            self.bytes.extend(content);
        }
        self.varint(UNKNOWN_TAG as usize);
        self.bytes.extend([2, 9, 9]);
    }

    fn field(&mut self, field: &'static Field) {
        let nullable = field.is_nullable_in(self.version);
        let null = nullable && self.fill == Fill::Minimal;
        match field.kind {
            Kind::One(scalar) => self.scalar(scalar, null),
            Kind::Struct(_) if null => self.bytes.push(0xff),
            Kind::Struct(fields) => {
                if nullable {
                    self.bytes.push(1);
                }
                self.structure(fields);
            }
            Kind::Array(scalar) => self.array(null, |writer| writer.scalar(scalar, false)),
            Kind::Structs(fields) => self.array(null, |writer| writer.structure(fields)),
        }
    }

    fn array(&mut self, null: bool, mut element: impl FnMut(&mut Writer)) {
        let count = match self.fill {
            _ if null => None,
            Fill::Minimal => Some(0),
            Fill::Full => Some(2),
        };
        self.length(count, 4);
        for _ in 0..count.unwrap_or(0) {
            element(self);
        }
    }

    fn scalar(&mut self, scalar: Scalar, null: bool) {
        if let Some(width) = scalar.width() {
            return self.fixed(scalar, width);
        }
        let prefix_bytes = if scalar == Scalar::Text { 2 } else { 4 };
        if null {
            return self.length(None, prefix_bytes);
        }
        let content: &[u8] = match (self.fill, scalar) {
            (Fill::Minimal, _) => &[],
            (Fill::Full, Scalar::Text) => b"ab",
            (Fill::Full, _) => &[1, 2, 3],
        };
        self.length(Some(content.len()), prefix_bytes);
        self.bytes.extend(content);
    }

    fn fixed(&mut self, scalar: Scalar, width: usize) {
        match (self.fill, scalar) {
            (Fill::Minimal, _) => self.bytes.extend(vec![0; width]),
            (Fill::Full, Scalar::Uuid) => self.bytes.extend([0x11; 16]),
            (Fill::Full, Scalar::Float64) => self.bytes.extend(0.5f64.to_be_bytes()),
            (Fill::Full, Scalar::Bool | Scalar::Int8) => self.bytes.push(1),
            (Fill::Full, Scalar::Int16 | Scalar::Uint16) => self.bytes.extend(2i16.to_be_bytes()),
            (Fill::Full, Scalar::Int32) => self.bytes.extend(3i32.to_be_bytes()),
            (Fill::Full, _) => self.bytes.extend(4i64.to_be_bytes()),
        }
    }

    /// A length or count: compact in flexible versions, else signed in `prefix_bytes`.
    fn length(&mut self, length: Option<usize>, prefix_bytes: usize) {
        if self.flexible {
            return self.varint(length.map_or(0, |length| length + 1));
        }
        let wide = length.map_or([0xff; 8], |length| (length as u64).to_be_bytes());
        self.bytes.extend(wide.iter().skip(8 - prefix_bytes));
    }

    fn varint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.bytes.push((value as u8) | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}
