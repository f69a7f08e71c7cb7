//! Floor 1: what the broker tells its operator: counters, histograms, the metrics page and the log. Handles are taken once and kept,
//! recording is a few plain atomic additions, and memory is fixed by names that the broker chose, never by traffic.
//!
//! Upper floors call down with events (`telemetry.api(..).answered(..)`); what only they can compute at scrape time (log sizes,
//! group lag) they hand over as a [`ScrapeSource`], so nothing here calls up. Time arrives as an argument.

mod apis;
mod disk;
mod histogram;
mod listeners;
pub mod logs;
pub mod names;
pub mod page;
pub mod refusals;
mod replication;
pub mod samples;
mod shard;
mod topics;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::{Mutex, RwLock};

pub use apis::{Answered, ApiMetrics, FETCH_FOLLOWER_SLOT};
pub use disk::DiskMetrics;
pub use histogram::Histogram;
pub use listeners::ListenerMetrics;
pub use page::{Page, ScrapeSource};
pub use refusals::{Reason, Refusal, Refusals};
pub use replication::ReplicationMetrics;
pub use topics::TopicMetrics;

use crate::base::{MonotonicMs, TimestampMs};

/// A broker's stage of life, with Kafka's numbers (`BrokerState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerState {
    Starting = 1,
    Recovery = 2,
    Running = 3,
    ShuttingDown = 7,
}

/// All of one broker's metrics. Made once, shared by `Arc`; several brokers of one process each have their own.
pub struct Telemetry {
    pub disk: DiskMetrics,
    pub replication: ReplicationMetrics,
    pub refusals: Refusals,
    apis: apis::ApiTable,
    topics: topics::TopicTable,
    listeners: listeners::ListenerTable,
    broker_state: AtomicI64,
    started_ms: TimestampMs,
    sources: RwLock<Vec<Arc<dyn ScrapeSource>>>,
    /// Held while a page is made, so that a second scraper waits instead of doubling the work.
    rendering: Mutex<()>,
}

impl Telemetry {
    /// `started_ms` is the wall-clock time that `process_start_time_seconds` reports.
    pub fn new(started_ms: TimestampMs) -> Arc<Telemetry> {
        Arc::new(Telemetry {
            disk: DiskMetrics::default(),
            replication: ReplicationMetrics::default(),
            refusals: Refusals::default(),
            apis: apis::ApiTable::default(),
            topics: topics::TopicTable::default(),
            listeners: listeners::ListenerTable::default(),
            broker_state: AtomicI64::new(BrokerState::Starting as i64),
            started_ms,
            sources: RwLock::default(),
            rendering: Mutex::new(()),
        })
    }

    /// The handle of one API, by its key and the name that Kafka's `request` label has for it. Costs an array index.
    pub fn api(&self, key: i16, name: &'static str) -> &ApiMetrics {
        self.apis.at(key, name)
    }

    /// The handle of one topic. Takes a lock: keep the handle with the topic; its series end when the last holder drops it, and what it
    /// counted stays in the totals over all topics. Topics beyond [`crate::base::limits::TOPIC_SERIES_MAX`] share one, named `__other__`.
    pub fn topic(&self, name: &str) -> Arc<TopicMetrics> {
        self.topics.at(name)
    }

    /// The handle of one listener's connections; made at first use, kept for ever (listeners are the operator's).
    pub fn listener(&self, name: &str) -> Arc<ListenerMetrics> {
        self.listeners.at(name)
    }

    pub fn set_broker_state(&self, state: BrokerState) {
        self.broker_state.store(state as i64, Ordering::Relaxed);
    }

    /// Adds what is asked at every scrape. Sources write in the order in which they were added.
    pub fn add_source(&self, source: Arc<dyn ScrapeSource>) {
        self.sources.write().push(source);
    }

    /// Moves the windows of the quantiles on and logs what the refusal log held back. Call every few seconds.
    pub fn upkeep(&self, now: MonotonicMs) {
        self.apis.upkeep(now);
        self.disk.upkeep(now);
        self.refusals.upkeep(now);
    }

    /// The metrics page in Prometheus' text format 0.0.4. Takes milliseconds for each ten thousand series: call it where blocking
    /// is allowed.
    pub fn render(&self) -> String {
        let _one_at_a_time = self.rendering.lock();
        let mut page = Page::default();
        page.add(&names::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
        page.add(&names::PROCESS_START_TIME_SECONDS, &[], self.started_ms as f64 / 1000.0);
        page.add(&names::BROKER_STATE, &[], self.broker_state.load(Ordering::Relaxed) as f64);
        self.topics.write(&mut page);
        self.apis.write(&mut page);
        self.listeners.write(&mut page);
        self.disk.write(&mut page);
        self.replication.write(&mut page);
        self.refusals.write(&mut page);
        let sources = self.sources.read().clone();
        for source in sources {
            source.scrape(&mut page);
        }
        page.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl ScrapeSource for Fixed {
        fn scrape(&self, page: &mut Page) {
            page.add(&names::BROKERS, &[], 1.0);
        }
    }

    #[test]
    fn a_page_holds_events_and_what_sources_add() {
        let telemetry = Telemetry::new(1_500);
        telemetry.set_broker_state(BrokerState::Running);
        let orders = telemetry.topic("orders");
        orders.produced(3, 300);
        telemetry.replication.isr_shrunk();
        telemetry.replication.isr_shrunk();
        telemetry.replication.isr_expanded();
        telemetry.add_source(Arc::new(Fixed));
        let page = telemetry.render();
        for line in [
            "kafka_server_brokertopicmetrics_messagesin_total{topic=\"orders\"} 3",
            "kafka_server_kafkaserver_brokerstate 3",
            "process_start_time_seconds 1.5",
            "kafka_brokers 1",
            "kafka_server_replicamanager_isrshrinks_total 2",
            "kafka_server_replicamanager_isrexpands_total 1",
            "kafka_server_replicamanager_failedisrupdates_total 0",
        ] {
            assert!(page.lines().any(|have| have == line), "{line} is missing in\n{page}");
        }
    }
}
