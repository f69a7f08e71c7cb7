//! The form of bodies between our nodes that carry more than JSON: a JSON head behind its length, and then bytes as they are.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Head and tail in one.
pub fn seal(head: &impl Serialize, tail: &[u8]) -> Bytes {
    // Plain structs of texts and numbers: nothing that JSON cannot say.
    let head = serde_json::to_vec(head).unwrap_or_default();
    let mut sealed = BytesMut::with_capacity(4 + head.len() + tail.len());
    sealed.put_u32(u32::try_from(head.len()).unwrap_or(u32::MAX));
    sealed.put_slice(&head);
    sealed.put_slice(tail);
    sealed.freeze()
}

/// The head, and the tail behind it. The error is a sentence.
pub fn open<H: DeserializeOwned>(mut sealed: Bytes) -> Result<(H, Bytes), String> {
    let length = sealed.try_get_u32().map_err(|_| "no head".to_owned())?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > sealed.len() {
        return Err(format!("a head of {length} bytes in {}", sealed.len()));
    }
    let head = sealed.split_to(length);
    Ok((serde_json::from_slice(&head).map_err(|error| error.to_string())?, sealed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_is_opened() {
        let (head, tail) = open::<Vec<String>>(seal(&["head"], b"tail")).unwrap();
        assert_eq!((head, &tail[..]), (vec!["head".to_owned()], &b"tail"[..]));
    }

    #[test]
    fn what_is_cut_short_or_lies_about_its_length_is_refused() {
        let whole = seal(&["head"], b"");
        for len in 0..whole.len() {
            assert!(open::<Vec<String>>(whole.slice(..len)).is_err());
        }
        for bytes in [&b"\xff\xff\xff\xff[]"[..], b"\0\0\0\x02[", b"\0\0\0\x02{}", &[0xff; 8]] {
            assert!(open::<Vec<String>>(Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
    }
}
