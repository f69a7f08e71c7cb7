//! Big-endian numbers off the front of a slice. Every take says `None` instead of reading past the end.

/// Takes `N` bytes off the front.
#[inline]
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = bytes.split_first_chunk::<N>()?;
    *bytes = tail;
    Some(*head)
}

#[inline]
pub(super) fn take_i8(bytes: &mut &[u8]) -> Option<i8> {
    take::<1>(bytes).map(i8::from_be_bytes)
}

#[inline]
pub(super) fn take_i16(bytes: &mut &[u8]) -> Option<i16> {
    take::<2>(bytes).map(i16::from_be_bytes)
}

#[inline]
pub(super) fn take_i32(bytes: &mut &[u8]) -> Option<i32> {
    take::<4>(bytes).map(i32::from_be_bytes)
}

#[inline]
pub(super) fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    take::<4>(bytes).map(u32::from_be_bytes)
}

#[inline]
pub(super) fn take_i64(bytes: &mut &[u8]) -> Option<i64> {
    take::<8>(bytes).map(i64::from_be_bytes)
}

/// Takes `len` bytes off the front.
#[inline]
pub(super) fn take_slice<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(len)?;
    *bytes = tail;
    Some(head)
}
