//! StreamsGroupHeartbeatRequest v0 to v1. The heartbeat of a streams group member (KIP-1071).

use super::codec::message;
use crate::wire::messages::{GroupId, StrBytes};

message! {
    StreamsGroupHeartbeatRequest {
        group_id: GroupId;
        member_id: StrBytes;
        member_epoch: i32;
        endpoint_information_epoch: i32;
        instance_id: Option<StrBytes>;
        rack_id: Option<StrBytes>;
        rebalance_timeout_ms: i32 = -1;
        topology: Option<Topology>;
        active_tasks: Option<Vec<TaskIds>>;
        standby_tasks: Option<Vec<TaskIds>>;
        warmup_tasks: Option<Vec<TaskIds>>;
        process_id: Option<StrBytes>;
        user_endpoint: Option<Endpoint>;
        client_tags: Option<Vec<KeyValue>>;
        task_offsets: Option<Vec<TaskOffset>>;
        task_end_offsets: Option<Vec<TaskOffset>>;
        shutdown_application: bool;
    }

    Topology {
        epoch: i32;
        subtopologies: Vec<Subtopology>;
    }

    Subtopology {
        subtopology_id: StrBytes;
        source_topics: Vec<StrBytes>;
        source_topic_regex: Vec<StrBytes>;
        state_changelog_topics: Vec<TopicInfo>;
        repartition_sink_topics: Vec<StrBytes>;
        repartition_source_topics: Vec<TopicInfo>;
        copartition_groups: Vec<CopartitionGroup>;
    }

    TopicInfo {
        name: StrBytes;
        partitions: i32;
        replication_factor: i16;
        topic_configs: Vec<KeyValue>;
    }

    KeyValue {
        key: StrBytes;
        value: StrBytes;
    }

    CopartitionGroup {
        source_topics: Vec<i16>;
        source_topic_regex: Vec<i16>;
        repartition_source_topics: Vec<i16>;
    }

    TaskIds {
        subtopology_id: StrBytes;
        partitions: Vec<i32>;
    }

    Endpoint {
        host: StrBytes;
        port: u16;
    }

    TaskOffset {
        subtopology_id: StrBytes;
        partition: i32;
        offset: i64;
    }
}
