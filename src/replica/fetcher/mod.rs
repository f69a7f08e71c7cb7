//! Fetching from leaders: one task for each broker that leads something this node follows, with all those partitions in one incremental
//! session. There is never more than one request under way to a broker, and what it brings is written, and synced where the policy
//! asks for it, before the next one says so.

mod answer;
mod session;
mod source;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;

use crate::base::BrokerId;
use crate::host::Clock;
use crate::replica::flusher::Flusher;
use crate::replica::partition_follow::Files;
use crate::replica::partitions::Partitions;
use crate::replica::role::{Common, Gathered, Role};
use crate::wire::messages::{FetchRequest, FetchResponse};
use source::Source;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchFailed(pub String);

/// The way to other brokers. Requests to one broker arrive in the order of the calls; a future that is dropped means that nobody wants
/// the answer any more.
pub trait ReplicaFetch: Send + Sync {
    /// Sends a Fetch of v15 or later (topic ids, replica state) and gives back what was answered.
    fn fetch(&self, leader: BrokerId, request: FetchRequest) -> BoxFuture<'static, Result<FetchResponse, FetchFailed>>;
}

#[derive(Clone, Copy, Debug)]
pub struct FetcherOptions {
    /// `replica.fetch.wait.max.ms`
    pub wait_ms_max: u64,
    /// `replica.fetch.min.bytes`
    pub bytes_min: i32,
    /// `replica.fetch.max.bytes`: of one partition in one answer.
    pub partition_bytes_max: i32,
    /// `replica.fetch.response.max.bytes`
    pub response_bytes_max: i32,
    /// `replica.fetch.backoff.ms`: the longest pause after an error; the first ones are shorter.
    pub backoff_ms_max: u64,
}

impl Default for FetcherOptions {
    fn default() -> FetcherOptions {
        FetcherOptions {
            wait_ms_max: 500,
            bytes_min: 1,
            partition_bytes_max: 1 << 20,
            response_bytes_max: 10 << 20,
            backoff_ms_max: 1_000,
        }
    }
}

/// What every source needs.
pub(super) struct Surroundings {
    pub(super) partitions: Arc<Partitions>,
    pub(super) common: Arc<Common>,
    pub(super) flusher: Arc<Flusher>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) remote: Arc<dyn ReplicaFetch>,
    pub(super) options: FetcherOptions,
}

/// All fetchers of this node.
pub struct Fetchers {
    around: Arc<Surroundings>,
}

impl Surroundings {
    fn files(&self) -> Files<'_> {
        Files { flusher: &self.flusher, partitions: &self.partitions }
    }
}

impl Fetchers {
    pub fn new(
        partitions: &Arc<Partitions>,
        flusher: Arc<Flusher>,
        clock: Arc<dyn Clock>,
        remote: Arc<dyn ReplicaFetch>,
        options: FetcherOptions,
    ) -> Fetchers {
        let common = partitions.common().clone();
        Fetchers {
            around: Arc::new(Surroundings { partitions: partitions.clone(), common, flusher, clock, remote, options }),
        }
    }

    /// Never ends. Dropping the future ends all fetching, between two writes.
    pub async fn run(self) {
        let mut inboxes: HashMap<BrokerId, Arc<Gathered>> = HashMap::new();
        let mut tasks = JoinSet::new();
        loop {
            for partition in self.around.common.following.take() {
                let Role::Follower { leader, .. } = partition.role() else { continue };
                let inbox = inboxes.entry(leader).or_insert_with(|| {
                    let inbox = Arc::new(Gathered::default());
                    tasks.spawn(Source::new(leader, self.around.clone(), inbox.clone()).run());
                    inbox
                });
                inbox.add(&partition);
            }
            self.around.common.following.filled().await;
        }
    }
}
