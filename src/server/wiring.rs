//! From settings to what each part of a node is started with.

use crate::api::{AdvertisedListener, BrokerOptions};
use crate::base::limits::TAIL_BYTES_MAX;
use crate::config::{BrokerSettings, FlushPolicy as FlushPolicySetting, InternalTopicSettings, InternalTopicsSettings};
use crate::controller::decide::TopicDefaults;
use crate::controller::decide::internal_topics::InternalTopic;
use crate::controller::{ControllerOptions, ControllerSettings};
use crate::coordinator::group::GroupConfig;
use crate::metadata::ConfigResource;
use crate::metadata::config::{BrokerLayers, LogConfig};
use crate::quorum::QuorumTiming;
use crate::replica::{ConfigSource, FetcherOptions, FlushPolicy, MaintenanceIntervals, ReplicaOptions};

pub fn controller_options(settings: &BrokerSettings) -> ControllerOptions {
    ControllerOptions {
        node_id: settings.node_id,
        defaults: TopicDefaults {
            partitions: settings.topics.partitions_default,
            replication_factor: settings.topics.replication_factor_default,
        },
        settings: ControllerSettings {
            session_timeout_ms: settings.lifecycle.session_timeout_ms,
            balances_leaders: settings.controller.balances_leaders,
            balance_interval_ms: settings.controller.balance_interval_ms,
            unclean_interval_ms: settings.controller.unclean_interval_ms,
        },
        internal_topics: internal_topics(&settings.internal_topics),
        static_properties: settings.properties.clone(),
    }
}

fn internal_topics(settings: &InternalTopicsSettings) -> Vec<InternalTopic> {
    let (offsets, transactions, shares) =
        (settings.consumer_offsets, settings.transaction_state, settings.share_group_state);
    let in_sync_min = |topic: InternalTopicSettings| topic.in_sync_min.unwrap_or(1);
    vec![
        InternalTopic::consumer_offsets(offsets.partitions, offsets.replication_factor, offsets.segment_bytes),
        InternalTopic::transaction_state(
            transactions.partitions,
            transactions.replication_factor,
            transactions.segment_bytes,
            in_sync_min(transactions),
        ),
        InternalTopic::share_group_state(
            shares.partitions,
            shares.replication_factor,
            shares.segment_bytes,
            in_sync_min(shares),
        ),
    ]
}

pub fn config_source(settings: &BrokerSettings) -> ConfigSource {
    let (node_id, properties) = (settings.node_id, settings.properties.clone());
    Box::new(move |image, topic| {
        let below = BrokerLayers::of(image, node_id, &*properties);
        let overrides = image.configs(&ConfigResource::topic(topic)).map(|overrides| &**overrides);
        LogConfig::effective(&overrides, &below)
    })
}

pub fn replica_options(settings: &BrokerSettings) -> ReplicaOptions {
    let policy = flush_policy(settings.flush.policy);
    ReplicaOptions::new(settings.node_id, policy, settings.replication.lag_time_ms_max)
}

pub fn fetcher_options(settings: &BrokerSettings) -> FetcherOptions {
    let replication = &settings.replication;
    FetcherOptions {
        wait_ms_max: replication.fetch_wait_ms_max,
        bytes_min: replication.fetch_bytes_min,
        partition_bytes_max: replication.fetch_partition_bytes_max,
        response_bytes_max: replication.fetch_response_bytes_max,
        backoff_ms_max: replication.fetch_backoff_ms,
    }
}

/// From Kafka's two settings: a voter that has heard nothing for the fetch timeout stands for election at the latest.
pub fn quorum_timing(settings: &BrokerSettings) -> QuorumTiming {
    let usual = QuorumTiming::default();
    let election_ms_max = settings.quorum.fetch_timeout_ms.max(2);
    let election_ms_min = settings.quorum.election_timeout_ms.clamp(1, election_ms_max);
    QuorumTiming { heartbeat_ms: usual.heartbeat_ms.min(election_ms_min / 3).max(1), election_ms_min, election_ms_max }
}

pub fn flush_policy(policy: FlushPolicySetting) -> FlushPolicy {
    match policy {
        FlushPolicySetting::Sync => FlushPolicy::Sync,
        FlushPolicySetting::Interval => FlushPolicy::Interval,
        FlushPolicySetting::Os => FlushPolicy::Os,
    }
}

pub fn group_config(settings: &BrokerSettings) -> GroupConfig {
    let groups = &settings.groups;
    GroupConfig {
        initial_rebalance_delay_ms: groups.initial_rebalance_delay_ms,
        session_timeout_ms_min: groups.session_timeout_ms_min,
        session_timeout_ms_max: groups.session_timeout_ms_max,
        size_max: groups.size_max,
        offset_metadata_max: groups.offset_metadata_max,
        offsets_retention_ms: groups.offsets_retention_ms,
        retention_check_interval_ms: groups.offsets_retention_check_interval_ms,
    }
}

pub fn broker_options(settings: &BrokerSettings) -> BrokerOptions {
    let advertised = settings.advertised_listeners.iter().map(|advertised| AdvertisedListener {
        listener: advertised.name.as_str().into(),
        endpoint: Some((advertised.host.as_str().into(), advertised.port)),
    });
    BrokerOptions {
        node_id: settings.node_id,
        rack: settings.rack.as_deref().map(Into::into),
        advertised: advertised.collect(),
        controller_listener: controller_listener(settings).map(Into::into),
        auto_create_topics: settings.topics.auto_create,
        delete_topic_enable: settings.topics.delete_enable,
        partitions_default: settings.topics.partitions_default,
        replication_factor_default: settings.topics.replication_factor_default,
        fetch_bytes_max: settings.fetch.bytes_max,
        fetch_sessions_max: settings.fetch.sessions_max,
        request_partitions_max: settings.fetch.request_partitions_max,
        selects_by_rack: settings.replication.selects_by_rack,
        flush_policy: flush_policy(settings.flush.policy),
        static_properties: settings.properties.clone(),
    }
}

/// The name of the first listener for controllers; `None` where their traffic goes over the brokers' listener.
fn controller_listener(settings: &BrokerSettings) -> Option<&str> {
    let own = settings.listeners.iter().find(|listener| listener.is_controller).map(|listener| listener.name.as_str());
    let elsewhere = || settings.controller_listener_names.first().map(String::as_str);
    own.or_else(|| if settings.roles.controller { None } else { elsewhere() })
}

pub fn maintenance_intervals(settings: &BrokerSettings) -> MaintenanceIntervals {
    let flush_ms = match settings.flush.policy {
        // Whoever wants durability waits for it; what nobody waits for is synced so that a checkpoint can move on.
        FlushPolicySetting::Sync => settings.log.recovery_checkpoint_interval_ms,
        FlushPolicySetting::Interval => settings.flush.interval_ms,
        FlushPolicySetting::Os => u64::MAX,
    };
    MaintenanceIntervals {
        flush_ms,
        checkpoint_ms: settings.log.recovery_checkpoint_interval_ms,
        high_watermark_ms: settings.replication.high_watermark_checkpoint_interval_ms,
        retention_ms: settings.log.retention_check_interval_ms,
        producer_check_ms: settings.producers.id_expiration_check_interval_ms,
        producer_expiration_ms: settings.producers.id_expiration_ms,
        tail_bytes_max: TAIL_BYTES_MAX,
    }
}

/// One thread per core, unless the operator says otherwise.
pub fn shard_count(settings: &BrokerSettings) -> usize {
    if settings.properties.contains_key("num.network.threads") {
        return settings.sockets.network_threads.max(1);
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}
