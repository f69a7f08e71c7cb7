//! The interpreter of the shape table: walks a body once, takes no memory, and says which field broke which rule.
//! It knows nothing of single APIs; bytes behind the last field are allowed, as Kafka allows them.

use std::fmt;

use super::{Field, Kind, Scalar};
use crate::base::limits::TAGGED_FIELDS_MAX;

/// Array elements and tagged fields in one request. Every one becomes an object of some dozens to hundreds of bytes when it is
/// decoded, while a body can hold one in a byte or two. Enough to name every partition of a large cluster at once.
pub const ELEMENTS_MAX: usize = 250_000;

/// Kafka's own bound on a string.
const TEXT_BYTES_MAX: usize = i16::MAX as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeFault {
    /// Fewer bytes left than the field needs.
    Short {
        needed: usize,
        left: usize,
    },
    /// More elements than bytes left.
    Count {
        declared: u32,
        left: usize,
    },
    /// A length or count below -1.
    Negative(i32),
    /// Null where the version has none.
    Null,
    NotUtf8,
    /// A varint of more than 32 bits.
    Varint,
    TextTooLong(usize),
    TooManyElements,
    TooManyTags(u32),
    /// A tagged field whose content is not as long as it says.
    TagSize {
        tag: u32,
        declared: usize,
        used: usize,
    },
    /// A nullable structure starts with 1 or -1.
    StructMark(i8),
    /// The table has no such version.
    Version(i16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeError {
    /// The protocol's name of the field, in snake case; `tags` for a tag section.
    pub field: &'static str,
    pub fault: ShapeFault,
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "field {}: ", self.field)?;
        match self.fault {
            ShapeFault::Short { needed, left } => write!(f, "needs {needed} bytes, {left} left"),
            ShapeFault::Count { declared, left } => write!(f, "declares {declared} elements in {left} bytes"),
            ShapeFault::Negative(length) => write!(f, "has length {length}"),
            ShapeFault::Null => f.write_str("is null and must not be"),
            ShapeFault::NotUtf8 => f.write_str("is not UTF-8"),
            ShapeFault::Varint => f.write_str("has a varint of more than 32 bits"),
            ShapeFault::TextTooLong(length) => write!(f, "is a string of {length} bytes, at most {TEXT_BYTES_MAX}"),
            ShapeFault::TooManyElements => write!(f, "brings the request over {ELEMENTS_MAX} elements"),
            ShapeFault::TooManyTags(count) => write!(f, "{count} tagged fields, at most {TAGGED_FIELDS_MAX}"),
            ShapeFault::TagSize { tag, declared, used } => {
                write!(f, "tag {tag} declares {declared} bytes and uses {used}")
            }
            ShapeFault::StructMark(mark) => write!(f, "starts with {mark}, neither 1 nor -1"),
            ShapeFault::Version(version) => write!(f, "version {version} is not known"),
        }
    }
}

impl std::error::Error for ShapeError {}

/// The fault is left in the walk: results of no more than a register are what keeps the check near a hundred nanoseconds.
struct Refused;

type Checked<T> = Result<T, Refused>;

/// Walks `body` as `fields` in `version`; `flexible` says whether lengths are compact and tag sections are there (KIP-482).
/// Answers how many bytes the message takes.
pub fn check_body(fields: &'static [Field], version: i16, flexible: bool, body: &[u8]) -> Result<usize, ShapeError> {
    let fault = ShapeFault::Short { needed: 0, left: 0 };
    let mut walk = Walk { rest: body, version, flexible, elements_left: ELEMENTS_MAX, field: "body", fault };
    match walk.structure(fields) {
        Ok(()) => Ok(body.len() - walk.rest.len()),
        Err(Refused) => Err(ShapeError { field: walk.field, fault: walk.fault }),
    }
}

struct Walk<'a> {
    rest: &'a [u8],
    version: i16,
    flexible: bool,
    elements_left: usize,
    /// The field being walked, for the error.
    field: &'static str,
    /// Set by whoever answers [`Refused`].
    fault: ShapeFault,
}

impl Walk<'_> {
    #[cold]
    fn refuse<T>(&mut self, fault: ShapeFault) -> Checked<T> {
        self.fault = fault;
        Err(Refused)
    }

    fn structure(&mut self, fields: &'static [Field]) -> Checked<()> {
        for field in fields {
            if field.presence.tag.is_none() && field.is_in(self.version) {
                self.field = field.name;
                self.value(field)?;
            }
        }
        if self.flexible { self.tags(fields) } else { Ok(()) }
    }

    fn value(&mut self, field: &'static Field) -> Checked<()> {
        let nullable = field.is_nullable_in(self.version);
        match field.kind {
            Kind::One(scalar) => self.scalar(scalar, nullable),
            Kind::Array(scalar) => self.array(scalar, nullable),
            Kind::Struct(fields) if nullable => self.nullable_structure(fields),
            Kind::Struct(fields) => self.structure(fields),
            Kind::Structs(fields) => self.structures(fields, nullable),
        }
    }

    #[inline]
    fn scalar(&mut self, scalar: Scalar, nullable: bool) -> Checked<()> {
        match scalar.width() {
            Some(width) => self.skip(width),
            None => self.sized(scalar, nullable),
        }
    }

    fn sized(&mut self, scalar: Scalar, nullable: bool) -> Checked<()> {
        let length = match (self.flexible, scalar) {
            (true, _) => self.compact_length()?,
            (false, Scalar::Text) => self.length_i16()?,
            (false, _) => self.length_i32()?,
        };
        let Some(length) = length else { return self.null(nullable) };
        if scalar != Scalar::Text {
            return self.skip(length);
        }
        if length > TEXT_BYTES_MAX {
            return self.refuse(ShapeFault::TextTooLong(length));
        }
        let text = self.take(length)?;
        if std::str::from_utf8(text).is_ok() { Ok(()) } else { self.refuse(ShapeFault::NotUtf8) }
    }

    fn array(&mut self, scalar: Scalar, nullable: bool) -> Checked<()> {
        let Some(count) = self.count()? else { return self.null(nullable) };
        if let Some(width) = scalar.width() {
            return self.skip(count.saturating_mul(width));
        }
        for _ in 0..count {
            self.sized(scalar, false)?;
        }
        Ok(())
    }

    fn structures(&mut self, fields: &'static [Field], nullable: bool) -> Checked<()> {
        let Some(count) = self.count()? else { return self.null(nullable) };
        for _ in 0..count {
            self.structure(fields)?;
        }
        Ok(())
    }

    fn nullable_structure(&mut self, fields: &'static [Field]) -> Checked<()> {
        match i8::from_be_bytes(self.take_array()?) {
            -1 => Ok(()),
            1 => self.structure(fields),
            mark => self.refuse(ShapeFault::StructMark(mark)),
        }
    }

    /// Tagged fields: those the table knows must fill exactly the size they declare, others are skipped.
    fn tags(&mut self, fields: &'static [Field]) -> Checked<()> {
        // Nearly every section is empty.
        if let [0, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(());
        }
        self.field = "tags";
        let count = self.varint()?;
        if count as usize > TAGGED_FIELDS_MAX {
            return self.refuse(ShapeFault::TooManyTags(count));
        }
        for _ in 0..count {
            self.spend(1)?;
            let tag = self.varint()?;
            let size = self.varint()? as usize;
            match fields.iter().find(|field| field.presence.tag == Some(tag) && field.is_in(self.version)) {
                Some(field) => self.known_tag(tag, size, field)?,
                None => self.skip(size)?,
            }
        }
        Ok(())
    }

    fn known_tag(&mut self, tag: u32, declared: usize, field: &'static Field) -> Checked<()> {
        let content = self.take(declared)?;
        let behind = self.rest;
        self.rest = content;
        self.field = field.name;
        self.value(field)?;
        if !self.rest.is_empty() {
            return self.refuse(ShapeFault::TagSize { tag, declared, used: declared - self.rest.len() });
        }
        self.rest = behind;
        self.field = "tags";
        Ok(())
    }

    /// An array's count: no element is shorter than a byte, so more elements than bytes is a lie told at once.
    fn count(&mut self) -> Checked<Option<usize>> {
        let count = if self.flexible { self.compact_length()? } else { self.length_i32()? };
        let Some(count) = count else { return Ok(None) };
        if count > self.rest.len() {
            return self.refuse(ShapeFault::Count {
                declared: u32::try_from(count).unwrap_or(u32::MAX),
                left: self.rest.len(),
            });
        }
        self.spend(count)?;
        Ok(Some(count))
    }

    fn spend(&mut self, elements: usize) -> Checked<()> {
        match self.elements_left.checked_sub(elements) {
            Some(left) => {
                self.elements_left = left;
                Ok(())
            }
            None => self.refuse(ShapeFault::TooManyElements),
        }
    }

    fn length_i16(&mut self) -> Checked<Option<usize>> {
        let declared = i16::from_be_bytes(self.take_array()?);
        self.length(i32::from(declared))
    }

    fn length_i32(&mut self) -> Checked<Option<usize>> {
        let declared = i32::from_be_bytes(self.take_array()?);
        self.length(declared)
    }

    fn length(&mut self, declared: i32) -> Checked<Option<usize>> {
        match declared {
            -1 => Ok(None),
            0.. => Ok(Some(declared.unsigned_abs() as usize)),
            _ => self.refuse(ShapeFault::Negative(declared)),
        }
    }

    fn null(&mut self, nullable: bool) -> Checked<()> {
        if nullable { Ok(()) } else { self.refuse(ShapeFault::Null) }
    }

    /// Length + 1 as an unsigned varint; 0 is null.
    fn compact_length(&mut self) -> Checked<Option<usize>> {
        Ok(self.varint()?.checked_sub(1).map(|length| length as usize))
    }

    #[inline]
    fn varint(&mut self) -> Checked<u32> {
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Ok(u32::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Checked<u32> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.take_array()?;
            if shift == 28 && byte > 0x0f {
                return self.refuse(ShapeFault::Varint);
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.refuse(ShapeFault::Varint)
    }

    #[inline]
    fn skip(&mut self, length: usize) -> Checked<()> {
        self.take(length).map(|_| ())
    }
}

impl<'a> Walk<'a> {
    #[inline]
    fn take(&mut self, length: usize) -> Checked<&'a [u8]> {
        match self.rest.split_at_checked(length) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => self.refuse(ShapeFault::Short { needed: length, left: self.rest.len() }),
        }
    }

    #[inline]
    fn take_array<const N: usize>(&mut self) -> Checked<[u8; N]> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(*head)
            }
            None => self.refuse(ShapeFault::Short { needed: N, left: self.rest.len() }),
        }
    }
}
