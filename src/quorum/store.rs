//! The image in a key-value store: one tree per kind, big-endian keys, every value with its own checksum and the offset it is from.
//! The store is never the only copy of anything; whatever looks wrong makes it worthless, and it is made again.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::codec::StoredMembers;
use super::machine::Applied;
use super::snapshot::SnapshotId;
use crate::host::{KeyValueStore, KvEdit};
use crate::metadata::{ConfigResource, Image, MetadataRecord};

/// Below this much to read, snapshot and log are faster than opening the store, and it is not kept up to date while running: an
/// open sled costs 20 MiB and eight threads, which a small cluster has better use for.
pub(super) const WORTH_BYTES: u64 = 2 * 1024 * 1024;

/// The store's directory beside the log.
pub(super) const DIRECTORY: &str = "image";

const BROKERS: &str = "brokers";
const TOPICS: &str = "topics";
const CONFIGS: &str = "configs";
const FEATURES: &str = "features";
const CLUSTER: &str = "cluster";
/// Emptied before, and written after, everything else.
const POSITION: &str = "position";

const POSITION_KEY: &[u8] = b"position";
const CLUSTER_KEY: &[u8] = b"cluster";

/// Opens or makes a store in a directory.
pub type StoreOpener = Arc<dyn Fn(&Path) -> io::Result<Arc<dyn KeyValueStore>> + Send + Sync>;

/// Which image the other trees hold, when all their writes arrived.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    offset: i64,
    /// Entries in all the other trees.
    entries: usize,
    /// The last entry of the Raft log that is in it.
    term: u64,
    next_index: u64,
    members: StoredMembers,
}

/// What has no tree of its own.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Cluster {
    records: Vec<MetadataRecord>,
}

pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(DIRECTORY)
}

/// Opens the store; a store that cannot stand its own files may also panic, which counts as an error here.
pub(super) fn open(dir: &Path, opener: &StoreOpener) -> io::Result<Arc<dyn KeyValueStore>> {
    guarded(|| opener(&path(dir)))
}

pub(super) fn guarded<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(io::Error::other("the store panicked")))
}

/// The image in the store, `None` when there is none or anything about it is wrong.
pub(super) fn load_image(dir: &Path, opener: &StoreOpener) -> Option<Applied> {
    let loaded = open(dir, opener).and_then(|store| guarded(|| read_image(store.as_ref())));
    match loaded {
        Ok(applied) => applied,
        Err(error) => {
            tracing::warn!(%error, "the metadata image store cannot be used; it will be made again");
            None
        }
    }
}

pub(super) fn read_image(store: &dyn KeyValueStore) -> io::Result<Option<Applied>> {
    let Some(value) = store.get(POSITION, POSITION_KEY)? else { return Ok(None) };
    let position: Position = serde_json::from_slice(unwrap(&value)?.1)?;
    let mut image = Image::empty();
    let mut entries = 0;
    let mut apply = |record: &MetadataRecord| image.apply(position.offset, record).map_err(io::Error::other);
    for tree in [CLUSTER, FEATURES, BROKERS, TOPICS, CONFIGS] {
        for (_, value) in store.scan(tree)? {
            entries += 1;
            let (offset, json) = unwrap(&value)?;
            if offset > position.offset {
                return Err(io::Error::other(format!("an entry of offset {offset} is newer than the store")));
            }
            if tree == CLUSTER {
                serde_json::from_slice::<Cluster>(json)?.records.iter().try_for_each(&mut apply)?;
            } else if tree == CONFIGS {
                serde_json::from_slice::<Vec<MetadataRecord>>(json)?.iter().try_for_each(&mut apply)?;
            } else {
                apply(&MetadataRecord::from_json(json)?)?;
            }
        }
    }
    if entries != position.entries {
        return Err(io::Error::other(format!("{entries} entries, expected {}", position.entries)));
    }
    image.offset = position.offset;
    let log_id = SnapshotId { next_index: position.next_index, term: position.term }.log_id();
    Ok(Some(Applied { image: Arc::new(image), log_id, membership: position.members.to_stored_membership() }))
}

/// The edits that turn a store holding `old` into one holding `new`; without `old`, whatever is in the store goes first.
pub(super) fn edits(old: Option<&Image>, applied: &Applied) -> Vec<KvEdit> {
    let (empty, new) = (Image::empty(), &*applied.image);
    let mut edits = Edits { offset: new.offset, list: Vec::new() };
    if old.is_none() {
        let trees = [POSITION, CLUSTER, FEATURES, BROKERS, TOPICS, CONFIGS];
        edits.list.extend(trees.iter().map(|tree| KvEdit::Clear { tree }));
    }
    let old = old.unwrap_or(&empty);
    edits.put(CLUSTER, CLUSTER_KEY.to_vec(), &Cluster { records: cluster_records(new) });
    edits.difference(
        FEATURES,
        old.features_by_name(),
        new.features_by_name(),
        |name| name.as_bytes().to_vec(),
        |name, level| MetadataRecord::Feature { name: name.to_string(), level: *level },
    );
    edits.difference(
        BROKERS,
        old.brokers_by_id(),
        new.brokers_by_id(),
        |id| id.to_be_bytes().to_vec(),
        |_, broker| MetadataRecord::Broker((**broker).clone()),
    );
    edits.difference(
        TOPICS,
        old.topics_by_id(),
        new.topics_by_id(),
        |id| id.0.as_bytes().to_vec(),
        |_, topic| topic.to_record(),
    );
    edits.difference(
        CONFIGS,
        old.configs_by_resource(),
        new.configs_by_resource(),
        |one| config_key(one),
        |one, values| {
            values
                .iter()
                .map(|(name, value)| MetadataRecord::Config {
                    resource: (**one).clone(),
                    name: name.clone(),
                    value: Some(value.clone()),
                })
                .collect::<Vec<_>>()
        },
    );
    let entries = 1 + new.features_by_name().len() + new.brokers_by_id().len() + new.topics_by_id().len();
    let id = SnapshotId::of(applied.log_id);
    let position = Position {
        offset: new.offset,
        entries: entries + new.configs_by_resource().len(),
        term: id.term,
        next_index: id.next_index,
        members: StoredMembers::of(&applied.membership),
    };
    edits.put(POSITION, POSITION_KEY.to_vec(), &position);
    edits.list
}

fn cluster_records(image: &Image) -> Vec<MetadataRecord> {
    image
        .to_records()
        .into_iter()
        .filter(|record| matches!(record, MetadataRecord::Cluster { .. } | MetadataRecord::ProducerIds { .. }))
        .collect()
}

fn config_key(resource: &ConfigResource) -> Vec<u8> {
    let mut key = vec![resource.kind.id().unsigned_abs()];
    key.extend_from_slice(resource.name.as_bytes());
    key
}

struct Edits {
    offset: i64,
    list: Vec<KvEdit>,
}

impl Edits {
    fn put(&mut self, tree: &'static str, key: Vec<u8>, value: &impl Serialize) {
        let json = serde_json::to_vec(value).unwrap_or_default();
        self.list.push(KvEdit::Put { tree, key, value: wrap(self.offset, &json) });
    }

    fn difference<K: Ord + Clone, V: PartialEq + Clone, S: Serialize>(
        &mut self,
        tree: &'static str,
        old: &imbl::OrdMap<K, V>,
        new: &imbl::OrdMap<K, V>,
        key_bytes: impl Fn(&K) -> Vec<u8>,
        value: impl Fn(&K, &V) -> S,
    ) {
        use imbl::ordmap::DiffItem;
        for item in old.diff(new) {
            match item {
                DiffItem::Add(key, content) => self.put(tree, key_bytes(key), &value(key, content)),
                DiffItem::Update { new: (key, content), .. } => self.put(tree, key_bytes(key), &value(key, content)),
                DiffItem::Remove(key, _) => self.list.push(KvEdit::Remove { tree, key: key_bytes(key) }),
            }
        }
    }
}

/// A value as stored: checksum, offset, JSON.
fn wrap(offset: i64, json: &[u8]) -> Vec<u8> {
    let mut content = offset.to_be_bytes().to_vec();
    content.extend_from_slice(json);
    let mut value = crc32fast::hash(&content).to_be_bytes().to_vec();
    value.append(&mut content);
    value
}

fn unwrap(value: &[u8]) -> io::Result<(i64, &[u8])> {
    let damaged = || io::Error::other("a value is damaged");
    let (crc, content) = value.split_first_chunk::<4>().ok_or_else(damaged)?;
    if crc32fast::hash(content).to_be_bytes() != *crc {
        return Err(damaged());
    }
    let (offset, json) = content.split_first_chunk::<8>().ok_or_else(damaged)?;
    Ok((i64::from_be_bytes(*offset), json))
}
