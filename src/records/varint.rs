//! Zigzag varints as records use them: at most 5 bytes for 32 bits and 10 for 64. Bits beyond the width are dropped, as Java
//! drops them, so that we read a record exactly as its consumers will.

use super::source::Source;

/// Takes a 32-bit varint off the front; `None` when the bytes end or it has no end within 5 bytes.
#[inline(always)]
pub(super) fn take_varint<S: Source>(source: &mut S) -> Option<i32> {
    let first = source.byte()?;
    if first < 0x80 {
        return Some(unzigzag32(u32::from(first)));
    }
    take_long::<5, S>(first, source).map(|raw| unzigzag32(raw as u32))
}

/// Takes a 64-bit varint off the front; `None` when the bytes end or it has no end within 10 bytes.
#[inline(always)]
pub(super) fn take_varlong<S: Source>(source: &mut S) -> Option<i64> {
    let first = source.byte()?;
    if first < 0x80 {
        return Some(unzigzag64(u64::from(first)));
    }
    take_long::<10, S>(first, source).map(unzigzag64)
}

#[inline]
fn take_long<const BYTES_MAX: u32, S: Source>(first: u8, source: &mut S) -> Option<u64> {
    let mut raw = u64::from(first & 0x7f);
    for index in 1..BYTES_MAX {
        let byte = source.byte()?;
        raw |= u64::from(byte & 0x7f).wrapping_shl(7 * index);
        if byte < 0x80 {
            return Some(raw);
        }
    }
    None
}

#[inline(always)]
pub(super) fn unzigzag32(raw: u32) -> i32 {
    (raw >> 1) as i32 ^ -((raw & 1) as i32)
}

#[inline(always)]
pub(super) fn unzigzag64(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}

pub(super) fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_raw(out, u64::from(((value << 1) ^ (value >> 31)) as u32));
}

pub(super) fn put_varlong(out: &mut Vec<u8>, value: i64) {
    put_raw(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn put_raw(out: &mut Vec<u8>, mut raw: u64) {
    while raw >= 0x80 {
        out.push((raw as u8) | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_encodings() {
        for (value, expected) in [(0, &[0x00][..]), (-1, &[0x01]), (1, &[0x02]), (63, &[0x7e]), (64, &[0x80, 0x01])] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out, expected, "{value}");
        }
    }

    #[test]
    fn a_varint_without_an_end_is_none() {
        for bytes in [&[][..], &[0x80], &[0xff; 4], &[0xff; 5], &[0xff, 0xff, 0xff, 0xff, 0xff, 0x01]] {
            assert_eq!(take_varint(&mut &bytes[..]), None, "{bytes:?}");
        }
        assert_eq!(take_varlong(&mut &[0xff; 11][..]), None);
    }

    #[test]
    fn bits_beyond_the_width_are_dropped() {
        assert_eq!(take_varint(&mut &[0xff, 0xff, 0xff, 0xff, 0x7f][..]), Some(i32::MIN));
        assert_eq!(take_varint(&mut &[0x82, 0x80, 0x00][..]), Some(1));
    }

    proptest! {
        #[test]
        fn varints_round_trip(value: i32, long: i64, tail: Vec<u8>) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            put_varlong(&mut bytes, long);
            bytes.extend_from_slice(&tail);
            let mut rest = &bytes[..];
            prop_assert_eq!(take_varint(&mut rest), Some(value));
            prop_assert_eq!(take_varlong(&mut rest), Some(long));
            prop_assert_eq!(rest, &tail[..]);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = take_varint(&mut &bytes[..]);
            let _ = take_varlong(&mut &bytes[..]);
        }
    }
}
