//! StreamsGroupHeartbeatResponse v0 to v1. What a streams group member has to do (KIP-1071).

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    StreamsGroupHeartbeatResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<StrBytes>;
        member_id: StrBytes;
        member_epoch: i32;
        heartbeat_interval_ms: i32;
        acceptable_recovery_lag_legacy: i32 [..=0];
        task_offset_interval_ms: i32;
        acceptable_recovery_lag: i64 [1..] = -1;
        status: Option<Vec<Status>> = Some(Vec::new());
        active_tasks: Option<Vec<TaskIds>>;
        standby_tasks: Option<Vec<TaskIds>>;
        warmup_tasks: Option<Vec<TaskIds>>;
        topology_description_required: bool [1..];
        endpoint_information_epoch: i32;
        partitions_by_user_endpoint: Option<Vec<EndpointToPartitions>>;
    }

    Status {
        status_code: i8;
        status_detail: StrBytes;
    }

    TaskIds {
        subtopology_id: StrBytes;
        partitions: Vec<i32>;
    }

    EndpointToPartitions {
        user_endpoint: Endpoint;
        active_partitions: Vec<TopicPartition>;
        standby_partitions: Vec<TopicPartition>;
    }

    Endpoint {
        host: StrBytes;
        port: u16;
    }

    TopicPartition {
        topic: StrBytes;
        partitions: Vec<i32>;
    }
}
