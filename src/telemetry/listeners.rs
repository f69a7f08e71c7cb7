//! Connections and bytes by listener, and which client libraries connect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::names;
use super::page::Page;
use super::shard::{Sharded, add};

/// Client libraries by name and version that are counted apart.
const SOFTWARE_MAX: usize = 100;
const OTHER: &str = "__other__";

#[derive(Default)]
struct Counters {
    opened: AtomicU64,
    closed: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

/// One listener's counters.
#[derive(Default)]
pub struct ListenerMetrics {
    counters: Sharded<Counters>,
    software: Mutex<BTreeMap<(String, String), u64>>,
}

impl ListenerMetrics {
    pub fn opened(&self) {
        add(&self.counters.here().opened, 1);
    }

    pub fn closed(&self) {
        add(&self.counters.here().closed, 1);
    }

    pub fn received(&self, bytes: u64) {
        add(&self.counters.here().bytes_in, bytes);
    }

    pub fn sent(&self, bytes: u64) {
        add(&self.counters.here().bytes_out, bytes);
    }

    /// A connection introduced its client library (ApiVersions v3, KIP-511). Once for each connection: takes a lock.
    pub fn introduced(&self, software_name: &str, software_version: &str) {
        let mut software = self.software.lock();
        let mut key = (software_name.to_owned(), software_version.to_owned());
        if software.len() >= SOFTWARE_MAX && !software.contains_key(&key) {
            key = (OTHER.to_owned(), OTHER.to_owned());
        }
        *software.entry(key).or_default() += 1;
    }

    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        self.counters.sum(|c| &c.opened).wrapping_sub(self.counters.sum(|c| &c.closed))
    }

    fn write(&self, name: &str, page: &mut Page) {
        let labels = [name];
        page.add(&names::CONNECTIONS, &labels, self.open() as f64);
        page.add(&names::CONNECTIONS_CREATED, &labels, self.counters.sum(|c| &c.opened) as f64);
        page.add(&names::CONNECTIONS_CLOSED, &labels, self.counters.sum(|c| &c.closed) as f64);
        page.add(&names::INCOMING_BYTES, &labels, self.counters.sum(|c| &c.bytes_in) as f64);
        page.add(&names::OUTGOING_BYTES, &labels, self.counters.sum(|c| &c.bytes_out) as f64);
    }
}

/// All listeners by name.
#[derive(Default)]
pub(super) struct ListenerTable {
    by_name: Mutex<BTreeMap<String, Arc<ListenerMetrics>>>,
}

impl ListenerTable {
    pub fn at(&self, name: &str) -> Arc<ListenerMetrics> {
        self.by_name.lock().entry(name.to_owned()).or_default().clone()
    }

    pub fn write(&self, page: &mut Page) {
        let listeners = self.by_name.lock().clone();
        let mut software: BTreeMap<(String, String), u64> = BTreeMap::new();
        for (name, listener) in &listeners {
            listener.write(name, page);
            for (client, count) in listener.software.lock().iter() {
                *software.entry(client.clone()).or_default() += count;
            }
        }
        for ((name, version), count) in &software {
            page.add(&names::CLIENT_SOFTWARE, &[name, version], *count as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_connections_are_those_opened_and_not_closed() {
        let table = ListenerTable::default();
        let listener = table.at("PLAINTEXT");
        listener.opened();
        listener.opened();
        std::thread::scope(|scope| {
            scope.spawn(|| listener.closed());
        });
        assert_eq!(table.at("PLAINTEXT").open(), 1);
    }

    #[test]
    fn invented_client_names_do_not_make_series_without_end() {
        let listener = ListenerMetrics::default();
        for number in 0..10 * SOFTWARE_MAX {
            listener.introduced(&format!("client-{number}"), "1");
        }
        let software = listener.software.lock();
        assert_eq!(software.len(), SOFTWARE_MAX + 1);
        assert_eq!(software[&(OTHER.to_owned(), OTHER.to_owned())], 9 * SOFTWARE_MAX as u64);
    }
}
