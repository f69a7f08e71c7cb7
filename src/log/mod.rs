//! Floor 3, sync: one partition's log on one disk, in Apache Kafka's layout and formats. Blocking calls over `host`'s disk and no
//! suspension: what a function checked stays true to its end.
//!
//! | file | what it is |
//! |---|---|
//! | `partition_log` | [`Log`], the owner's side; `open`, `reload`, `append`, `flush` and `shorten` hold its methods by purpose |
//! | `view` | [`LogView`], the readers' side; `times` looks offsets up by time |
//! | `damage` | whether a log still says what was written |
//! | `segment/` | one file of batches with its indexes; `sparse_index` are those, `scan` walks batches |
//! | `relocate` | a log that takes the place of another one with the same records |
//! | `epochs`, `producers`, `retention` | pure: leader epochs, idempotent producers, what may be removed |
//! | `producer_snapshot`, `partition_metadata`, `checkpoint_text`, `names` | file formats |
//! | `checkpoints` | the files beside the partition directories |
//! | `file_cache` | the bound on open descriptors |

mod append;
mod checkpoint_text;
pub mod checkpoints;
mod damage;
#[cfg(test)]
mod damage_tests;
mod due;
mod epochs;
mod error;
mod file_cache;
mod flush;
mod names;
mod open;
mod partition_log;
mod partition_metadata;
mod producer_snapshot;
mod producers;
mod reload;
mod relocate;
mod retention;
mod scan;
mod segment;
mod shorten;
mod sparse_index;
mod times;
mod view;

pub use append::{Appended, NewBatch};
pub use damage::{Damage, DamageWalk, Looked};
pub use epochs::{EpochStart, EpochTable};
pub use error::{AppendError, LogError, ReadError};
pub use file_cache::FileCache;
pub use flush::{FlushTargets, Writeback};
pub use open::{OpenHow, Recovery};
pub use partition_log::{Log, LogEnv, LogIdentity};
pub use partition_metadata::{read as read_topic_id, write as write_topic_id};
pub use producers::{BatchMemory, ProducerEntry};
pub use retention::Reason;
pub use segment::{MaxTimestamp, Place, Segment};
pub use shorten::{DeletedSegment, future_dir_name, future_of, is_retired_dir_name, retired_dir_name, stray_dir_name};
pub use times::TimedOffset;
pub use view::{LogView, ReadSlice};
