//! What the metrics page asks the upper floors at each scrape. They need not know of metrics: this floor stands above all of them.

mod cluster;
mod groups;
mod partitions;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::api::Broker;
use crate::controller::ControllerCounts;
use crate::telemetry::{Page, ScrapeSource, names};

/// Everything that is computed when asked: the cluster, logs, offsets, groups and their lag.
pub struct BrokerSource {
    /// The broker owns the telemetry that owns this.
    broker: Weak<Broker>,
    /// Where the first listener is bound, for a broker that advertises nothing.
    bound: Option<SocketAddr>,
}

impl BrokerSource {
    pub fn new(broker: &Arc<Broker>, bound: Option<SocketAddr>) -> BrokerSource {
        BrokerSource { broker: Arc::downgrade(broker), bound }
    }
}

impl ScrapeSource for BrokerSource {
    fn scrape(&self, page: &mut Page) {
        let Some(broker) = self.broker.upgrade() else {
            return;
        };
        let image = broker.image();
        cluster::write(&image, broker.options.node_id, broker.is_active_controller(), self.bound, page);
        write_controller(broker.controller.counts(), page);
        partitions::write(&broker.partitions, &image, broker.options.node_id, page);
        groups::write(&broker.groups, &broker.partitions, page);
        page.add(&names::FETCH_SESSIONS, &[], broker.fetch_sessions.len() as f64);
    }
}

fn write_controller(counts: &ControllerCounts, page: &mut Page) {
    let all = [
        (&names::UNCLEAN_ELECTIONS, &counts.unclean_elections),
        (&names::LEADER_ELECTIONS, &counts.elections),
        (&names::BROKERS_FENCED, &counts.brokers_fenced),
    ];
    for (name, count) in all {
        page.add(name, &[], count.load(Ordering::Relaxed) as f64);
    }
}
