//! The few encodings that hand-written answers need: compact and plain lengths, texts, empty tag sections.

use bytes::{BufMut, BytesMut};

/// Unsigned varint (KIP-482).
pub(in crate::wire) fn put_varint(buffer: &mut BytesMut, mut value: u32) {
    while value >= 0x80 {
        buffer.put_u8((value as u8) | 0x80);
        value >>= 7;
    }
    buffer.put_u8(value as u8);
}

/// Bytes that [`put_varint`] takes.
pub(in crate::wire) const fn varint_bytes(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// An array's count; `None` is null.
pub(in crate::wire) fn put_count(buffer: &mut BytesMut, flexible: bool, count: Option<usize>) -> Result<(), String> {
    let count = count.map(i32::try_from).transpose().map_err(|_| "array has more elements than fit".to_owned())?;
    match (flexible, count) {
        (true, count) => put_varint(buffer, count.map_or(0, |count| count.unsigned_abs() + 1)),
        (false, count) => buffer.put_i32(count.unwrap_or(-1)),
    }
    Ok(())
}

/// A text; `None` is null.
pub(in crate::wire) fn put_text(buffer: &mut BytesMut, flexible: bool, text: Option<&str>) -> Result<(), String> {
    let Some(text) = text else {
        if flexible {
            buffer.put_u8(0)
        } else {
            buffer.put_i16(-1)
        }
        return Ok(());
    };
    let length = i16::try_from(text.len()).map_err(|_| format!("string of {} bytes is too long", text.len()))?;
    if flexible {
        put_varint(buffer, u32::from(length.unsigned_abs()) + 1)
    } else {
        buffer.put_i16(length)
    }
    buffer.put_slice(text.as_bytes());
    Ok(())
}

/// The tag section of a structure that has none.
pub(in crate::wire) fn put_no_tags(buffer: &mut BytesMut, flexible: bool) {
    if flexible {
        buffer.put_u8(0);
    }
}
