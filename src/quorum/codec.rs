//! Entries and metadata records in record batches, so that ordinary log tools read the files: one batch per entry, whose offset is
//! the entry's index and whose value is JSON; in a snapshot, one value per metadata record.
//!
//! The key of an entry says what a reader of a damaged log must know of it: its term, and how much of the log before it was
//! certainly on the disk when it was written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use openraft::EntryPayload;
use serde::{Deserialize, Serialize};

use super::types::{Change, Entry, Membership, Request, StoredMembership, log_id};
use crate::base::{BrokerId, LeaderEpoch, NodeAddress, Offset, TimestampMs};
use crate::metadata::MetadataRecord;
use crate::records::{BatchBuilder, Codec};

/// Why a batch whose checksum is right still cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadRecord {
    pub(super) offset: Offset,
    pub(super) what: String,
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at {})", self.what, self.offset)
    }
}

/// The key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryKey {
    pub(super) term: u64,
    /// Everything before this index was synced before the entry was written.
    pub(super) synced_to: u64,
}

impl EntryKey {
    fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.term) << 64 | u128::from(self.synced_to)).to_be_bytes()
    }

    fn parse(key: &[u8]) -> Option<EntryKey> {
        let (term, synced_to) = key.split_first_chunk::<8>()?;
        let synced_to = synced_to.try_into().ok()?;
        Some(EntryKey { term: u64::from_be_bytes(*term), synced_to: u64::from_be_bytes(synced_to) })
    }
}

/// Who votes and who listens, as stored: nothing of it depends on the library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Members {
    /// Two sets while the quorum changes.
    voters: Vec<BTreeSet<BrokerId>>,
    nodes: BTreeMap<BrokerId, NodeAddress>,
}

impl Members {
    pub(super) fn of(membership: &Membership) -> Members {
        Members {
            voters: membership.get_joint_config().clone(),
            nodes: membership.nodes().map(|(id, node)| (*id, node.clone())).collect(),
        }
    }

    pub(super) fn to_membership(&self) -> Membership {
        Membership::new(self.voters.clone(), self.nodes.clone())
    }
}

/// [`Members`] and the entry they came with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredMembers {
    term: u64,
    /// One more than the entry's index; 0 when no entry has named any members yet.
    next_index: u64,
    members: Members,
}

impl StoredMembers {
    pub(super) fn of(stored: &StoredMembership) -> StoredMembers {
        let (term, next_index) = stored.log_id().map_or((0, 0), |id| (id.leader_id.term, id.index.saturating_add(1)));
        StoredMembers { term, next_index, members: Members::of(stored.membership()) }
    }

    pub(super) fn to_stored_membership(&self) -> StoredMembership {
        let id = self.next_index.checked_sub(1).map(|index| log_id(self.term, index));
        StoredMembership::new(id, self.members.to_membership())
    }
}

/// The value of an entry. One with neither members nor changes is what a new leader begins its term with.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEntry {
    /// Entries before this index were agreed on when this one was written.
    agreed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<Members>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<Arc<Vec<Change>>>,
}

/// A decoded entry, and how much of the log was agreed on when it was written.
pub(super) struct Decoded {
    pub(super) entry: Entry,
    pub(super) agreed: u64,
}

fn offset(index: u64) -> Offset {
    Offset::try_from(index).unwrap_or(Offset::MAX)
}

/// One batch with one entry.
pub(super) fn encode_entry(entry: &Entry, synced_to: u64, agreed: u64, now: TimestampMs) -> Vec<u8> {
    let (members, changes) = match &entry.payload {
        EntryPayload::Blank => (None, None),
        EntryPayload::Normal(request) => (None, Some(request.changes.clone())),
        EntryPayload::Membership(membership) => (Some(Members::of(membership)), None),
    };
    let term = entry.log_id.leader_id.term;
    let value = serde_json::to_vec(&StoredEntry { agreed, members, changes }).unwrap_or_default();
    let mut builder = BatchBuilder::new(Codec::None);
    builder.push(now, Some(&EntryKey { term, synced_to }.to_bytes()), Some(&value), &[]);
    builder.finish(offset(entry.log_id.index), LeaderEpoch::try_from(term).unwrap_or(LeaderEpoch::MAX))
}

/// The key of the entry in a whole batch.
pub(super) fn entry_key(batch: &[u8]) -> Result<EntryKey, BadRecord> {
    with_only_record(batch, |_, key, _| key)
}

pub(super) fn decode_entry(batch: &[u8]) -> Result<Decoded, BadRecord> {
    with_only_record(batch, |index, key, value| (index, key, serde_json::from_slice::<StoredEntry>(value))).and_then(
        |(index, key, stored)| {
            let stored = stored.map_err(|error| BadRecord { offset: offset(index), what: error.to_string() })?;
            let payload = match (stored.members, stored.changes) {
                (Some(members), _) => EntryPayload::Membership(members.to_membership()),
                (None, Some(changes)) => EntryPayload::Normal(Request { changes }),
                (None, None) => EntryPayload::Blank,
            };
            Ok(Decoded { entry: Entry { log_id: log_id(key.term, index), payload }, agreed: stored.agreed })
        },
    )
}

fn with_only_record<T>(batch: &[u8], read: impl FnOnce(u64, EntryKey, &[u8]) -> T) -> Result<T, BadRecord> {
    let bad = |offset, what: String| BadRecord { offset, what };
    let records = crate::records::records(batch, batch.len()).map_err(|error| bad(-1, error.to_string()))?;
    let first = records.iter().next().ok_or_else(|| bad(-1, "a batch without a record".to_owned()))?;
    let record = first.map_err(|error| bad(-1, error.to_string()))?;
    let Some(key) = record.key.and_then(EntryKey::parse) else {
        let what = "not an entry of this version; is this another broker's directory, or one of a development version?";
        return Err(bad(record.offset, what.to_owned()));
    };
    let index = u64::try_from(record.offset).map_err(|_| bad(record.offset, "a negative index".to_owned()))?;
    Ok(read(index, key, record.value.unwrap_or_default()))
}

/// One batch of all the records.
pub(super) fn encode_records<'a>(
    records: impl IntoIterator<Item = &'a MetadataRecord>,
    base_offset: Offset,
    epoch: LeaderEpoch,
    now: TimestampMs,
) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Codec::None);
    for record in records {
        builder.push(now, None, Some(&record.to_json()), &[]);
    }
    builder.finish(base_offset, epoch)
}

/// The records of one whole batch, with their offsets, passed on one by one.
pub(super) fn decode_records(
    batch: &[u8],
    mut each: impl FnMut(Offset, MetadataRecord) -> Result<(), BadRecord>,
) -> Result<(), BadRecord> {
    let bad = |offset, what: String| BadRecord { offset, what };
    let records = crate::records::records(batch, batch.len()).map_err(|error| bad(-1, error.to_string()))?;
    for record in &records {
        let record = record.map_err(|error| bad(-1, error.to_string()))?;
        let parsed = MetadataRecord::from_json(record.value.unwrap_or_default())
            .map_err(|error| bad(record.offset, error.to_string()))?;
        each(record.offset, parsed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(payload: EntryPayload<super::super::types::TypeConfig>) {
        let entry = Entry { log_id: log_id(3, 17), payload };
        let batch = encode_entry(&entry, 15, 14, 1000);
        assert_eq!(entry_key(&batch), Ok(EntryKey { term: 3, synced_to: 15 }));
        let decoded = decode_entry(&batch).unwrap();
        assert_eq!((decoded.entry, decoded.agreed), (entry, 14));
    }

    #[test]
    fn entries_survive_a_round_trip() {
        round_trip(EntryPayload::Blank);
        let nodes: BTreeMap<_, _> = (1..=3).map(|id| (id, NodeAddress::new("h", 9093))).collect();
        round_trip(EntryPayload::Membership(Membership::new(vec![BTreeSet::from([1, 2])], nodes)));
        let records = vec![MetadataRecord::Feature { name: "f".into(), level: 1 }];
        round_trip(EntryPayload::Normal(Request {
            changes: Arc::new(vec![Change { expected_offset: Some(4), records }]),
        }));
    }

    #[test]
    fn stored_members_survive_a_round_trip() {
        let nodes: BTreeMap<_, _> = [(7, NodeAddress::new("h", 1))].into();
        for id in [None, Some(log_id(0, 0)), Some(log_id(2, 9))] {
            let stored = StoredMembership::new(id, Membership::new(vec![BTreeSet::from([7])], nodes.clone()));
            assert_eq!(StoredMembers::of(&stored).to_stored_membership(), stored);
        }
    }
}
