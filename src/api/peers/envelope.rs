//! A client's request on its way from the node it is connected to to the active controller, and the answer on its way back: a JSON head
//! behind its length, and then the frame as it is.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::base::BrokerId;

/// Whose request it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// The node that the client is connected to.
    pub node_id: BrokerId,
    pub peer: SocketAddr,
    /// The address by which the client reached the first node.
    pub local: SocketAddr,
    pub listener: String,
    pub principal: String,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The answer's frame follows. What it says holds from this metadata offset on.
    Answered { offset: i64 },
    /// The node that was asked is not the active controller (any more).
    NotController,
    /// The client's connection has to be closed.
    Refused { sentence: String },
}

/// Head and frame in one.
pub fn seal(head: &impl Serialize, frame: &[u8]) -> Bytes {
    // Plain structs of texts and numbers: nothing that JSON cannot say.
    let head = serde_json::to_vec(head).unwrap_or_default();
    let mut sealed = BytesMut::with_capacity(4 + head.len() + frame.len());
    sealed.put_u32(u32::try_from(head.len()).unwrap_or(u32::MAX));
    sealed.put_slice(&head);
    sealed.put_slice(frame);
    sealed.freeze()
}

/// The head, and the frame behind it.
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
        let outcome = Outcome::Answered { offset: 7 };
        let (head, frame) = open::<Outcome>(seal(&outcome, b"frame")).unwrap();
        assert_eq!((head, &frame[..]), (outcome, &b"frame"[..]));
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        for bytes in [&b""[..], b"\0\0\0", b"\xff\xff\xff\xff{}", b"\0\0\0\x02{", b"\0\0\0\x02[]"] {
            assert!(open::<Outcome>(Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
    }
}
