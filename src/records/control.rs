//! Control records: what brokers write between clients' records. Their key is a version and a type (KIP-98, KIP-595); of the
//! values only the end-of-transaction marker is made here.

use super::cursor::take_i16;

/// What a control record says, by the type in its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlKind {
    Abort,
    Commit,
    LeaderChange,
    SnapshotHeader,
    SnapshotFooter,
    KraftVersion,
    KraftVoters,
}

impl ControlKind {
    const ALL: [ControlKind; 7] = [
        ControlKind::Abort,
        ControlKind::Commit,
        ControlKind::LeaderChange,
        ControlKind::SnapshotHeader,
        ControlKind::SnapshotFooter,
        ControlKind::KraftVersion,
        ControlKind::KraftVoters,
    ];

    /// The type in the key.
    pub fn id(self) -> i16 {
        self as i16
    }

    /// Reads a control record's key; `None` for a type that is not known, which readers are to skip.
    pub fn parse_key(key: &[u8]) -> Option<ControlKind> {
        let mut rest = key;
        let version = take_i16(&mut rest)?;
        let kind = take_i16(&mut rest)?;
        if version < 0 {
            return None;
        }
        Self::ALL.into_iter().find(|known| known.id() == kind)
    }

    /// The key of a control record of this kind, version 0.
    pub fn key(self) -> [u8; 4] {
        let [high, low] = self.id().to_be_bytes();
        [0, 0, high, low]
    }
}

/// The value of a transaction marker, version 0: the version and the epoch of the coordinator that wrote it.
pub fn end_transaction_marker(coordinator_epoch: i32) -> [u8; 6] {
    let [a, b, c, d] = coordinator_epoch.to_be_bytes();
    [0, 0, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_and_carry_kafkas_types() {
        for (kind, id) in ControlKind::ALL.into_iter().zip(0i16..) {
            assert_eq!(kind.id(), id);
            assert_eq!(ControlKind::parse_key(&kind.key()), Some(kind));
        }
    }

    #[test]
    fn unknown_types_and_short_keys_are_none() {
        for key in [&[][..], &[0, 0, 0], &[0, 0, 0, 7], &[0xff, 0xff, 0, 0]] {
            assert_eq!(ControlKind::parse_key(key), None, "{key:?}");
        }
        assert_eq!(ControlKind::parse_key(&[0, 9, 0, 1, 5]), Some(ControlKind::Commit));
    }

    #[test]
    fn a_marker_carries_the_coordinator_epoch() {
        assert_eq!(end_transaction_marker(0x0102_0304), [0, 0, 1, 2, 3, 4]);
    }
}
