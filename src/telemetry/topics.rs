//! Traffic by topic. Each partition keeps its topic's handle; a Produce costs a few additions on the thread's own cache line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::RwLock;

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

/// One topic's counters.
#[derive(Default)]
pub struct TopicMetrics {
    counters: Sharded<Counters>,
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
    inner: RwLock<Topics>,
}

#[derive(Default)]
struct Topics {
    by_name: BTreeMap<Arc<str>, Arc<TopicMetrics>>,
    /// What forgotten topics had counted.
    forgotten: [u64; SERIES.len()],
}

impl TopicTable {
    pub fn at(&self, name: &str) -> Arc<TopicMetrics> {
        if let Some(topic) = self.inner.read().by_name.get(name) {
            return topic.clone();
        }
        let mut inner = self.inner.write();
        let full = inner.by_name.len() >= TOPIC_SERIES_MAX && !inner.by_name.contains_key(name);
        let name = if full { OTHER } else { name };
        inner.by_name.entry(name.into()).or_default().clone()
    }

    pub fn forget(&self, name: &str) {
        let mut inner = self.inner.write();
        if let Some(topic) = inner.by_name.remove(name) {
            add_to(&mut inner.forgotten, &topic.figures());
        }
    }

    pub fn write(&self, page: &mut Page) {
        let topics = self.inner.read();
        let mut all = topics.forgotten;
        let mut by_topic = Vec::with_capacity(topics.by_name.len());
        for (name, topic) in &topics.by_name {
            let figures = topic.figures();
            add_to(&mut all, &figures);
            by_topic.push((name.clone(), figures));
        }
        drop(topics);
        for (index, (metric, _)) in SERIES.iter().enumerate() {
            page.add(metric, &[""], all[index] as f64);
            for (name, figures) in &by_topic {
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
        table.at("b").produced(1, 50);
        table.at("b").fetched(7);
        table.forget("a");
        table.forget("never seen");
        let page = page(&table);
        assert!(!page.contains("topic=\"a\""));
        assert!(page.contains("\nkafka_server_brokertopicmetrics_bytesin_total 1050\n"), "{page}");
        assert!(page.contains("\nkafka_server_brokertopicmetrics_bytesin_total{topic=\"b\"} 50\n"));
        assert!(page.contains("\nkafka_server_brokertopicmetrics_bytesout_total{topic=\"b\"} 7\n"));
    }

    #[test]
    fn failures_count_as_requests() {
        let table = TopicTable::default();
        table.at("a").produce_failed(99);
        table.at("a").fetch_failed();
        assert_eq!(table.at("a").figures(), [0, 0, 0, 99, 1, 1, 1, 1]);
    }

    #[test]
    fn topics_beyond_the_bound_share_one_handle() {
        let table = TopicTable::default();
        for number in 0..TOPIC_SERIES_MAX {
            table.at(&format!("t{number}"));
        }
        assert!(Arc::ptr_eq(&table.at("one more"), &table.at("and another")));
        assert!(!Arc::ptr_eq(&table.at("one more"), &table.at("t0")));
        table.forget("t0");
        table.forget("t1");
        assert!(!Arc::ptr_eq(&table.at("one more"), &table.at("and another")), "room again");
    }
}
