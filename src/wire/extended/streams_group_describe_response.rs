//! StreamsGroupDescribeResponse v0 to v1. Streams groups with their topology and members (KIP-1071).

use super::codec::message;
use crate::wire::messages::{GroupId, StrBytes};

message! {
    StreamsGroupDescribeResponse {
        throttle_time_ms: i32;
        groups: Vec<DescribedGroup>;
    }

    DescribedGroup {
        error_code: i16;
        error_message: Option<StrBytes>;
        group_id: GroupId;
        group_state: StrBytes;
        group_epoch: i32;
        assignment_epoch: i32;
        topology: Option<Topology>;
        members: Vec<Member>;
        authorized_operations: i32 = -2147483648;
        topology_description: Option<TopologyDescription> [1..];
        topology_description_status: i8 [1..];
        assignor_name: Option<StrBytes> [1..];
    }

    Topology {
        epoch: i32;
        subtopologies: Option<Vec<Subtopology>>;
    }

    Subtopology {
        subtopology_id: StrBytes;
        source_topics: Vec<StrBytes>;
        repartition_sink_topics: Vec<StrBytes>;
        state_changelog_topics: Vec<TopicInfo>;
        repartition_source_topics: Vec<TopicInfo>;
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

    Member {
        member_id: StrBytes;
        member_epoch: i32;
        instance_id: Option<StrBytes>;
        rack_id: Option<StrBytes>;
        client_id: StrBytes;
        client_host: StrBytes;
        topology_epoch: i32;
        process_id: StrBytes;
        user_endpoint: Option<Endpoint>;
        client_tags: Vec<KeyValue>;
        task_offsets: Vec<TaskOffset>;
        task_end_offsets: Vec<TaskOffset>;
        assignment: Assignment;
        target_assignment: Assignment;
        is_classic: bool;
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

    Assignment {
        active_tasks: Vec<TaskIds>;
        standby_tasks: Vec<TaskIds>;
        warmup_tasks: Vec<TaskIds>;
    }

    TaskIds {
        subtopology_id: StrBytes;
        partitions: Vec<i32>;
    }

    TopologyDescription {
        subtopologies: Vec<TopologyDescriptionSubtopology>;
        global_stores: Vec<TopologyDescriptionGlobalStore>;
    }

    TopologyDescriptionSubtopology {
        subtopology_id: StrBytes;
        nodes: Vec<TopologyDescriptionNode>;
    }

    TopologyDescriptionNode {
        name: StrBytes;
        node_type: i8;
        source_topics: Vec<StrBytes>;
        sink_topic: Option<StrBytes>;
        stores: Vec<StrBytes>;
        successors: Vec<StrBytes>;
    }

    TopologyDescriptionGlobalStore {
        source: TopologyDescriptionNode;
        processor: TopologyDescriptionNode;
    }
}
