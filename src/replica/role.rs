//! What this node is for a partition, and what all its partitions share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::base::{BrokerId, LeaderEpoch, MonotonicMs};
use crate::metadata::Image;
use crate::replica::damage::Concerns;
use crate::replica::flusher::FlushPolicy;
use crate::replica::leader::Rules;
use crate::replica::partition::Partition;
use crate::replica::throttle::Throttle;

/// A partition's role here. It changes only with the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Leader {
        epoch: LeaderEpoch,
    },
    Follower {
        leader: BrokerId,
        epoch: LeaderEpoch,
    },
    /// Nobody leads, or the metadata has not said yet.
    Idle {
        epoch: LeaderEpoch,
    },
}

impl Role {
    pub fn epoch(self) -> LeaderEpoch {
        match self {
            Role::Leader { epoch } | Role::Follower { epoch, .. } | Role::Idle { epoch } => epoch,
        }
    }
}

/// How this node replicates.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaOptions {
    pub node_id: BrokerId,
    pub flush_policy: FlushPolicy,
    /// `replica.lag.time.max.ms`
    pub lag_ms_max: u64,
    pub rules: Rules,
}

impl ReplicaOptions {
    pub fn new(node_id: BrokerId, flush_policy: FlushPolicy, lag_ms_max: u64) -> ReplicaOptions {
        ReplicaOptions { node_id, flush_policy, lag_ms_max, rules: Rules::in_force() }
    }
}

/// What all partitions of this node share.
pub struct Common {
    pub options: ReplicaOptions,
    /// The metadata that has taken effect here.
    pub image: ArcSwap<Image>,
    /// Partitions whose in-sync set wants a look: see [`crate::replica::IsrDriver`].
    pub growing: Gathered,
    /// Partitions that follow somebody else than before: see [`crate::replica::Fetchers`].
    pub following: Gathered,
    /// Partitions that the metadata believes in another directory than they are in, or in none.
    pub misplaced: Gathered,
    /// Partitions that are to move to another directory: see [`crate::replica::Mover`].
    pub moving: Gathered,
    /// Copies that are not what was written: see [`crate::replica::Rebuilder`].
    pub concerns: Concerns,
    /// How fast replicas that catch up may be fetched from here, and by here.
    pub leader_throttle: Throttle,
    pub follower_throttle: Throttle,
    /// How fast replicas may be copied from one directory to another.
    pub moving_throttle: Throttle,
    /// The controller has not heard from us for a session: nothing is acknowledged as a leader until it has (F6).
    fenced: AtomicBool,
    /// Until when, by the monotonic clock, no controller can hold this node for dead: a session behind the last heartbeat that was answered.
    session_ends_ms: AtomicU64,
    /// Of this node's newest registration; -1 before the first.
    broker_epoch: AtomicI64,
}

impl Common {
    pub fn new(options: ReplicaOptions) -> Common {
        Common {
            options,
            image: ArcSwap::from_pointee(Image::empty()),
            growing: Gathered::default(),
            following: Gathered::default(),
            misplaced: Gathered::default(),
            moving: Gathered::default(),
            concerns: Concerns::default(),
            leader_throttle: Throttle::default(),
            follower_throttle: Throttle::default(),
            moving_throttle: Throttle::default(),
            fenced: AtomicBool::new(false),
            session_ends_ms: AtomicU64::new(MonotonicMs::MAX),
            broker_epoch: AtomicI64::new(-1),
        }
    }

    pub fn broker_epoch(&self) -> i64 {
        self.broker_epoch.load(Ordering::Acquire)
    }

    pub fn set_broker_epoch(&self, epoch: i64) {
        self.broker_epoch.store(epoch, Ordering::Release);
    }

    pub fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::Acquire)
    }

    pub fn set_fenced(&self, fenced: bool) -> bool {
        self.fenced.swap(fenced, Ordering::AcqRel)
    }

    pub fn set_session_end(&self, at: MonotonicMs) {
        self.session_ends_ms.store(at, Ordering::Release);
    }

    /// Whether somebody may have been given what this node led: also when it has just woken from standing still and knows nothing of it yet.
    pub fn may_have_successors(&self, now: MonotonicMs) -> bool {
        self.is_fenced() || now > self.session_ends_ms.load(Ordering::Acquire)
    }

    /// The broker epoch under which a broker may be in sync: it is registered, not fenced, and not about to stop.
    pub fn eligible_epoch(&self, broker: BrokerId) -> Option<i64> {
        let image = self.image.load();
        image.broker(broker).filter(|broker| broker.is_active()).map(|broker| broker.epoch)
    }
}

/// Partitions that somebody will look at soon.
#[derive(Default)]
pub struct Gathered {
    partitions: Mutex<Vec<Arc<Partition>>>,
    any: Notify,
}

impl Gathered {
    pub fn add(&self, partition: &Arc<Partition>) {
        self.partitions.lock().push(partition.clone());
        self.any.notify_one();
    }

    pub fn take(&self) -> Vec<Arc<Partition>> {
        std::mem::take(&mut *self.partitions.lock())
    }

    /// Completes when there is something to take.
    pub async fn filled(&self) {
        while self.partitions.lock().is_empty() {
            self.any.notified().await;
        }
    }
}
