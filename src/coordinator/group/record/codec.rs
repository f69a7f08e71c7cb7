//! The primitive types of Kafka's message format, read from and written to coordinator records. A reader never trusts a length:
//! whatever is declared must be there.

use thiserror::Error;

/// Why a record of an internal topic could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("{wanted} bytes of {field} wanted, {left} left")]
    Truncated { field: &'static str, wanted: usize, left: usize },
    #[error("{field} has the length {length}")]
    BadLength { field: &'static str, length: i64 },
    #[error("{field} is not UTF-8")]
    NotUtf8 { field: &'static str },
    #[error("{record} has the version {version}, known are 0 to {known_max}")]
    UnknownVersion { record: &'static str, version: i16, known_max: i16 },
}

/// A cursor over one key or value. `flexible` chooses compact lengths and tagged fields (KIP-482).
pub struct Reader<'a> {
    left: &'a [u8],
    flexible: bool,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { left: bytes, flexible: false }
    }

    pub fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    pub fn take(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.left.split_at_checked(count) {
            Some((taken, left)) => {
                self.left = left;
                Ok(taken)
            }
            None => Err(DecodeError::Truncated { field, wanted: count, left: self.left.len() }),
        }
    }

    fn fixed<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, field)?);
        Ok(out)
    }

    pub fn i16(&mut self, field: &'static str) -> Result<i16, DecodeError> {
        Ok(i16::from_be_bytes(self.fixed(field)?))
    }

    pub fn i32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        Ok(i32::from_be_bytes(self.fixed(field)?))
    }

    pub fn i64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        Ok(i64::from_be_bytes(self.fixed(field)?))
    }

    pub fn uuid(&mut self, field: &'static str) -> Result<[u8; 16], DecodeError> {
        self.fixed(field)
    }

    pub fn unsigned_varint(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.fixed::<1>(field)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| DecodeError::BadLength { field, length: value as i64 });
            }
        }
        Err(DecodeError::BadLength { field, length: value as i64 })
    }

    /// A declared length; `None` is null. `wide` is for types whose plain length is an int32 (bytes, arrays) rather than an int16.
    fn length(&mut self, field: &'static str, wide: bool) -> Result<Option<usize>, DecodeError> {
        let length = match (self.flexible, wide) {
            (true, _) => i64::from(self.unsigned_varint(field)?) - 1,
            (false, true) => i64::from(self.i32(field)?),
            (false, false) => i64::from(self.i16(field)?),
        };
        match length {
            -1 => Ok(None),
            0.. => Ok(Some(length as usize)),
            _ => Err(DecodeError::BadLength { field, length }),
        }
    }

    pub fn nullable_string(&mut self, field: &'static str) -> Result<Option<&'a str>, DecodeError> {
        let Some(length) = self.length(field, false)? else { return Ok(None) };
        let bytes = self.take(length, field)?;
        std::str::from_utf8(bytes).map(Some).map_err(|_| DecodeError::NotUtf8 { field })
    }

    pub fn string(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        self.nullable_string(field)?.ok_or(DecodeError::BadLength { field, length: -1 })
    }

    pub fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.length(field, true)?.ok_or(DecodeError::BadLength { field, length: -1 })?;
        self.take(length, field)
    }

    /// The number of elements of an array. Each element takes at least one byte, so a count beyond what is left is refused here
    /// and memory may be set aside for it.
    pub fn count(&mut self, field: &'static str) -> Result<usize, DecodeError> {
        let count = self.length(field, true)?.ok_or(DecodeError::BadLength { field, length: -1 })?;
        if count > self.left.len() {
            return Err(DecodeError::Truncated { field, wanted: count, left: self.left.len() });
        }
        Ok(count)
    }

    /// Hands every tagged field to `on_field`; nothing where the encoding is not flexible.
    pub fn tagged_fields(
        &mut self,
        mut on_field: impl FnMut(u32, &'a [u8]) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.unsigned_varint("tagged fields")? {
            let tag = self.unsigned_varint("tag")?;
            let size = self.unsigned_varint("tagged field size")? as usize;
            on_field(tag, self.take(size, "tagged field")?)?;
        }
        Ok(())
    }
}

/// Writes the plain (non-flexible) encoding, and the few compact pieces that a flexible value needs.
pub trait Write {
    fn put_i16(&mut self, value: i16);
    fn put_i32(&mut self, value: i32);
    fn put_i64(&mut self, value: i64);
    /// At most 32,767 bytes: every string that gets here came in as a protocol string or was bounded before.
    fn put_string(&mut self, value: &str);
    fn put_nullable_string(&mut self, value: Option<&str>);
    fn put_bytes(&mut self, value: &[u8]);
    fn put_unsigned_varint(&mut self, value: u32);
    fn put_compact_string(&mut self, value: &str);
}

impl Write for Vec<u8> {
    fn put_i16(&mut self, value: i16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_i32(&mut self, value: i32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_i64(&mut self, value: i64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_string(&mut self, value: &str) {
        debug_assert!(value.len() <= i16::MAX as usize);
        self.put_i16(value.len() as i16);
        self.extend_from_slice(value.as_bytes());
    }

    fn put_nullable_string(&mut self, value: Option<&str>) {
        match value {
            Some(value) => self.put_string(value),
            None => self.put_i16(-1),
        }
    }

    fn put_bytes(&mut self, value: &[u8]) {
        self.put_i32(value.len() as i32);
        self.extend_from_slice(value);
    }

    fn put_unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn put_compact_string(&mut self, value: &str) {
        self.put_unsigned_varint(value.len() as u32 + 1);
        self.extend_from_slice(value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_lengths_beyond_the_end_are_refused() {
        assert_eq!(
            Reader::new(&[0, 5, b'a']).string("name"),
            Err(DecodeError::Truncated { field: "name", wanted: 5, left: 1 })
        );
        assert!(Reader::new(&[0x7f, 0xff, 0xff, 0xff]).count("members").is_err());
        assert!(Reader::new(&[0xff, 0xfe]).string("name").is_err());
        assert!(Reader::new(&[0xff, 0xff]).string("name").is_err());
        assert_eq!(Reader::new(&[0xff, 0xff]).nullable_string("name"), Ok(None));
    }

    #[test]
    fn unsigned_varints_round_trip() {
        for value in [0, 1, 127, 128, 300, 65_535, u32::MAX] {
            let mut bytes = Vec::new();
            bytes.put_unsigned_varint(value);
            assert_eq!(Reader::new(&bytes).unsigned_varint("n"), Ok(value));
        }
        assert!(Reader::new(&[0xff; 6]).unsigned_varint("n").is_err());
    }
}
