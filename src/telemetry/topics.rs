//! Traffic by topic. Each topic's handle is kept by what holds the topic; a Produce costs a few additions on the thread's own cache
//! line. A topic's series live as long as somebody holds the handle.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

use super::names::{self, Metric};
use super::page::Page;
use super::shard::{Sharded, add};
use crate::base::limits::TOPIC_SERIES_MAX;

const OTHER: &str = "__other__";

/// One cache line.
#[derive(Default)]
struct Counters {
    messages_in: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    bytes_rejected: AtomicU64,
    produce_requests: AtomicU64,
    fetch_requests: AtomicU64,
    failed_produce_requests: AtomicU64,
    failed_fetch_requests: AtomicU64,
}

type Pick = fn(&Counters) -> &AtomicU64;

const SERIES: [(&Metric, Pick); 8] = [
    (&names::MESSAGES_IN, |c| &c.messages_in),
    (&names::BYTES_IN, |c| &c.bytes_in),
    (&names::BYTES_OUT, |c| &c.bytes_out),
    (&names::BYTES_REJECTED, |c| &c.bytes_rejected),
    (&names::PRODUCE_REQUESTS, |c| &c.produce_requests),
    (&names::FETCH_REQUESTS, |c| &c.fetch_requests),
    (&names::FAILED_PRODUCE_REQUESTS, |c| &c.failed_produce_requests),
    (&names::FAILED_FETCH_REQUESTS, |c| &c.failed_fetch_requests),
];

/// What topics had counted whose handles are gone.
type Forgotten = Arc<Mutex<[u64; SERIES.len()]>>;

/// One topic's counters.
#[derive(Default)]
pub struct TopicMetrics {
    counters: Sharded<Counters>,
    forgotten: Forgotten,
}

impl Drop for TopicMetrics {
    fn drop(&mut self) {
        add_to(&mut self.forgotten.lock(), &self.figures());
    }
}

impl TopicMetrics {
    /// A partition's part of a Produce request was appended.
    pub fn produced(&self, messages: u64, bytes: u64) {
        let counters = self.counters.here();
        add(&counters.produce_requests, 1);
        add(&counters.messages_in, messages);
        add(&counters.bytes_in, bytes);
    }

    /// A partition's part of a Produce request was answered with an error.
    pub fn produce_failed(&self, bytes: u64) {
        let counters = self.counters.here();
        add(&counters.produce_requests, 1);
        add(&counters.failed_produce_requests, 1);
        add(&counters.bytes_rejected, bytes);
    }

    /// A partition's part of a consumer's Fetch request was read. 0 bytes is an answer too.
    pub fn fetched(&self, bytes: u64) {
        let counters = self.counters.here();
        add(&counters.fetch_requests, 1);
        add(&counters.bytes_out, bytes);
    }

    /// A partition's part of a Fetch request was answered with an error.
    pub fn fetch_failed(&self) {
        let counters = self.counters.here();
        add(&counters.fetch_requests, 1);
        add(&counters.failed_fetch_requests, 1);
    }

    fn figures(&self) -> [u64; SERIES.len()] {
        SERIES.map(|(_, pick)| self.counters.sum(pick))
    }
}

/// All topics by name.
#[derive(Default)]
pub(super) struct TopicTable {
    by_name: RwLock<BTreeMap<Arc<str>, Weak<TopicMetrics>>>,
    /// Shared by the topics that have no series of their own.
    other: Mutex<Weak<TopicMetrics>>,
    forgotten: Forgotten,
}

impl TopicTable {
    pub fn at(&self, name: &str) -> Arc<TopicMetrics> {
        if let Some(topic) = self.by_name.read().get(name).and_then(Weak::upgrade) {
            return topic;
        }
        let mut by_name = self.by_name.write();
        if let Some(topic) = by_name.get(name).and_then(Weak::upgrade) {
            return topic;
        }
        if by_name.len() >= TOPIC_SERIES_MAX {
            by_name.retain(|_, topic| topic.strong_count() > 0);
        }
        if by_name.len() >= TOPIC_SERIES_MAX {
            return self.other();
        }
        let topic = self.fresh();
        by_name.insert(name.into(), Arc::downgrade(&topic));
        topic
    }

    fn other(&self) -> Arc<TopicMetrics> {
        let mut other = self.other.lock();
        other.upgrade().unwrap_or_else(|| {
            let topic = self.fresh();
            *other = Arc::downgrade(&topic);
            topic
        })
    }

    fn fresh(&self) -> Arc<TopicMetrics> {
        Arc::new(TopicMetrics { counters: Sharded::default(), forgotten: self.forgotten.clone() })
    }

    pub fn write(&self, page: &mut Page) {
        let mut topics: Vec<(Arc<str>, Arc<TopicMetrics>)> = Vec::new();
        let alive = |(name, topic): (&Arc<str>, &Weak<TopicMetrics>)| Some((name.clone(), topic.upgrade()?));
        topics.extend(self.by_name.read().iter().filter_map(alive));
        topics.extend(self.other.lock().upgrade().map(|topic| (OTHER.into(), topic)));
        let mut all = *self.forgotten.lock();
        let figures: Vec<_> = topics.iter().map(|(_, topic)| topic.figures()).collect();
        figures.iter().for_each(|figures| add_to(&mut all, figures));
        for (index, (metric, _)) in SERIES.iter().enumerate() {
            page.add(metric, &[""], all[index] as f64);
            for ((name, _), figures) in topics.iter().zip(&figures) {
                page.add(metric, &[name], figures[index] as f64);
            }
        }
    }
}

fn add_to(sums: &mut [u64; SERIES.len()], figures: &[u64; SERIES.len()]) {
    sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(table: &TopicTable) -> String {
        let mut page = Page::default();
        table.write(&mut page);
        page.finish()
    }

    #[test]
    fn a_deleted_topic_leaves_the_page_but_not_the_total() {
        let table = TopicTable::default();
        table.at("a").produced(10, 1000);
        let b = table.at("b");
        b.produced(1, 50);
        b.fetched(7);
        let page = page(&table);
        assert!(!page.contains("topic=\"a\""));
        assert!(page.contains("\nkafka_server_brokertopicmetrics_bytesin_total 1050\n"), "{page}");
        assert!(page.contains("\nkafka_server_brokertopicmetrics_bytesin_total{topic=\"b\"} 50\n"));
        assert!(page.contains("\nkafka_server_brokertopicmetrics_bytesout_total{topic=\"b\"} 7\n"));
    }

    #[test]
    fn a_topic_made_again_while_the_old_one_is_held_has_one_series() {
        let table = TopicTable::default();
        let old = table.at("a");
        old.produced(1, 1);
        let new = table.at("a");
        drop(old);
        new.produced(1, 1);
        assert!(page(&table).contains("\nkafka_server_brokertopicmetrics_messagesin_total{topic=\"a\"} 2\n"));
        drop(new);
        assert!(page(&table).contains("\nkafka_server_brokertopicmetrics_messagesin_total 2\n"));
    }

    #[test]
    fn failures_count_as_requests() {
        let topic = TopicMetrics::default();
        topic.produce_failed(99);
        topic.fetch_failed();
        assert_eq!(topic.figures(), [0, 0, 0, 99, 1, 1, 1, 1]);
    }

    #[test]
    fn topics_beyond_the_bound_share_one_handle() {
        let table = TopicTable::default();
        let mut held: Vec<_> = (0..TOPIC_SERIES_MAX).map(|number| table.at(&format!("t{number}"))).collect();
        let first = table.at("one more");
        first.produced(5, 5);
        assert!(Arc::ptr_eq(&first, &table.at("and another")));
        assert!(Arc::ptr_eq(&held[0], &table.at("t0")));
        assert!(page(&table).contains("\nkafka_server_brokertopicmetrics_messagesin_total{topic=\"__other__\"} 5\n"));
        held.truncate(TOPIC_SERIES_MAX - 1);
        assert!(!Arc::ptr_eq(&first, &table.at("one more")), "room again");
    }
}
