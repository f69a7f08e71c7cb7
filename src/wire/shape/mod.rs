//! The shape of every request body of the broker listener, and one small interpreter that walks an incoming body over it before
//! anything is decoded. What passes can be decoded without a surprise: every length and count was held against the bytes that are left.
//!
//! Facts of the public protocol (message schemas of Kafka 4.4), one line a field. Records are skipped, not read.

pub mod answers;
mod check;
pub mod cluster;
pub mod configs;
pub mod data;
pub mod groups;
pub mod nodes;
pub mod sample;
pub mod security;
pub mod share;
pub mod streams;
pub mod topics;
pub mod transactions;

pub use check::{ELEMENTS_MAX, ShapeError, ShapeFault, check_body};

/// What a single value is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Float64,
    Uuid,
    /// UTF-8 behind an i16 length, or an unsigned varint of length + 1 in flexible versions.
    Text,
    /// Behind an i32 length, or an unsigned varint of length + 1 in flexible versions.
    Bytes,
    /// Record batches: framed like [`Scalar::Bytes`], judged by `records`.
    Records,
}

impl Scalar {
    /// Bytes on the wire, `None` where a length stands in front.
    pub const fn width(self) -> Option<usize> {
        match self {
            Scalar::Bool | Scalar::Int8 => Some(1),
            Scalar::Int16 | Scalar::Uint16 => Some(2),
            Scalar::Int32 => Some(4),
            Scalar::Int64 | Scalar::Float64 => Some(8),
            Scalar::Uuid => Some(16),
            Scalar::Text | Scalar::Bytes | Scalar::Records => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    One(Scalar),
    Array(Scalar),
    Struct(&'static [Field]),
    Structs(&'static [Field]),
}

/// In which versions of the message a field is there, may be null, and whether it is a tagged field (KIP-482).
#[derive(Clone, Copy, Debug)]
pub struct Presence {
    pub since: i16,
    pub until: i16,
    /// First version in which null is legal; `i16::MAX` when it never is.
    pub nullable_since: i16,
    pub tag: Option<u32>,
}

/// In every version that its structure is in, never null, not tagged.
pub const ALWAYS: Presence = Presence { since: 0, until: i16::MAX, nullable_since: i16::MAX, tag: None };

impl Presence {
    pub const fn since(mut self, version: i16) -> Presence {
        self.since = version;
        self
    }

    pub const fn until(mut self, version: i16) -> Presence {
        self.until = version;
        self
    }

    pub const fn nullable(self) -> Presence {
        self.nullable_since(0)
    }

    pub const fn nullable_since(mut self, version: i16) -> Presence {
        self.nullable_since = version;
        self
    }

    pub const fn tag(mut self, tag: u32) -> Presence {
        self.tag = Some(tag);
        self
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub presence: Presence,
}

impl Field {
    pub const fn is_in(&self, version: i16) -> bool {
        self.presence.since <= version && version <= self.presence.until
    }

    pub const fn is_nullable_in(&self, version: i16) -> bool {
        version >= self.presence.nullable_since
    }

    pub const fn since(mut self, version: i16) -> Field {
        self.presence = self.presence.since(version);
        self
    }

    pub const fn until(mut self, version: i16) -> Field {
        self.presence = self.presence.until(version);
        self
    }

    pub const fn nullable(mut self) -> Field {
        self.presence = self.presence.nullable();
        self
    }

    pub const fn nullable_since(mut self, version: i16) -> Field {
        self.presence = self.presence.nullable_since(version);
        self
    }

    pub const fn tag(mut self, tag: u32) -> Field {
        self.presence = self.presence.tag(tag);
        self
    }
}

/// A single value.
const fn value(name: &'static str, scalar: Scalar) -> Field {
    Field { name, kind: Kind::One(scalar), presence: ALWAYS }
}

/// An array of single values.
const fn array(name: &'static str, scalar: Scalar) -> Field {
    Field { name, kind: Kind::Array(scalar), presence: ALWAYS }
}

/// One structure.
const fn one(name: &'static str, presence: Presence, fields: &'static [Field]) -> Field {
    Field { name, kind: Kind::Struct(fields), presence }
}

/// An array of structures.
const fn structs(name: &'static str, presence: Presence, fields: &'static [Field]) -> Field {
    Field { name, kind: Kind::Structs(fields), presence }
}
