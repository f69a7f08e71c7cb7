//! What the metrics page asks the upper floors at each scrape. They need not know of metrics: this floor stands above all of them.

mod cluster;

pub use cluster::ClusterSource;
