//! After the disk failed, a machine may know what the log has lost: it was replayed when it was appended. It is dropped then and read
//! from the log again. Meanwhile its groups are answered COORDINATOR_LOAD_IN_PROGRESS, and NOT_COORDINATOR when the log cannot be read.
//!
//! Nothing is tried twice: where the log directory is out of service, reading fails too, and the partition stays unserved until a
//! restart.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::GroupCoordinator;
use super::shard::Shard;

/// Shards that wait to be read again, each with the number of its load. At most one entry a shard: it has no machine to distrust
/// before that load ends.
#[derive(Default)]
pub struct Reloads {
    waiting: Mutex<Vec<(Arc<Shard>, u64)>>,
    bell: Notify,
}

impl Reloads {
    fn ask(&self, shard: Arc<Shard>, load: u64) {
        self.waiting.lock().push((shard, load));
        self.bell.notify_one();
    }

    fn take(&self) -> Option<(Arc<Shard>, u64)> {
        self.waiting.lock().pop()
    }

    /// Resolves when a reload was asked for.
    pub async fn asked(&self) {
        self.bell.notified().await;
    }
}

impl GroupCoordinator {
    /// The log may lack something that the machine of this load knows: the machine goes at once, its successor comes soon.
    pub(super) fn distrust(&self, shard: &Arc<Shard>, load: u64) {
        let next = self.loads.fetch_add(1, Ordering::Relaxed);
        if shard.begin_reload(load, next) {
            let partition = shard.partition;
            tracing::error!(partition, "a write to __consumer_offsets failed; its groups are read from the log again");
            self.reloads.ask(shard.clone(), next);
        }
    }

    /// Reads again what is waiting for that. Part of [`GroupCoordinator::run_timers`].
    pub(crate) async fn reload_distrusted(&self) {
        while let Some((shard, load)) = self.reloads.take() {
            self.finish_load(shard, load).await;
        }
    }
}
