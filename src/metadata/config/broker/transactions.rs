//! Broker settings of transactions and idempotent producers.

use crate::metadata::config::key::{Key, keys};

/// Sorted by name.
pub static KEYS: &[Key] = keys! {
    "add.partitions.to.txn.retry.backoff.max.ms" Int "100" [AtLeast(0)] ReadOnly:
        "Longest pause between tries of adding a partition to a transaction.";
    "add.partitions.to.txn.retry.backoff.ms" Int "20" [AtLeast(1)] ReadOnly:
        "First pause between tries of adding a partition to a transaction.";
    "producer.id.expiration.check.interval.ms" Int "600000" [AtLeast(1)] ReadOnly internal:
        "How often it is checked which idempotent producers are forgotten.";
    "producer.id.expiration.ms" Int "86400000" [AtLeast(1)] ClusterWide:
        "How long an idempotent producer is remembered after its last record.";
    "transaction.abort.timed.out.transaction.cleanup.interval.ms" Int "10000" [AtLeast(1)] ReadOnly:
        "How often it is checked which transactions took too long.";
    "transaction.max.timeout.ms" Int "900000" [AtLeast(1)] ReadOnly:
        "Longest time that a client may ask for its transactions.";
    "transaction.partition.verification.enable" Boolean "true" [Any] ClusterWide:
        "Whether it is checked that a partition belongs to the transaction written to it.";
    "transaction.remove.expired.transaction.cleanup.interval.ms" Int "3600000" [AtLeast(1)] ReadOnly:
        "How often it is checked which transactional ids are too old.";
    "transaction.state.log.load.buffer.size" Int "5242880" [AtLeast(1)] ReadOnly:
        "Bytes read at once when the transactions are loaded.";
    "transaction.state.log.min.isr" Int "2" [AtLeast(1)] ReadOnly:
        "In-sync copies that the topic of transactions needs; the number of replicas caps it.";
    "transaction.state.log.num.partitions" Int "50" [AtLeast(1)] ReadOnly:
        "Partitions of the topic of transactions; fixed once it exists.";
    "transaction.state.log.replication.factor" Short "3" [AtLeast(1)] ReadOnly:
        "Copies of the topic of transactions; as many as there are brokers when there are fewer.";
    "transaction.state.log.segment.bytes" Int "104857600" [AtLeast(1)] ReadOnly:
        "Segment size of the topic of transactions.";
    "transaction.two.phase.commit.enable" Boolean "false" [Any] ReadOnly:
        "Whether a client may keep a prepared transaction open without a timeout.";
    "transactional.id.expiration.ms" Int "604800000" [AtLeast(1)] ReadOnly:
        "How long an unused transactional id is remembered.";
};
