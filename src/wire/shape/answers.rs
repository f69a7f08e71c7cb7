//! Answers that nodes take from one another, in the version that they speak among themselves (see [`crate::wire::client`]). One line a
//! field: name, kind, first and last version, nullable, tag; see [`super::Field`].

use super::Scalar::{Bool, Int8, Int16, Int32, Int64, Records, Text, Uuid};
use super::{ALWAYS, Field, array, one, structs, value};

pub static FETCH: &[Field] = &[
    value("throttle_time_ms", Int32),
    value("error_code", Int16),
    value("session_id", Int32),
    structs(
        "responses",
        ALWAYS,
        &[
            value("topic_id", Uuid),
            structs(
                "partitions",
                ALWAYS,
                &[
                    value("partition_index", Int32),
                    value("error_code", Int16),
                    value("high_watermark", Int64),
                    value("last_stable_offset", Int64),
                    value("log_start_offset", Int64),
                    one("diverging_epoch", ALWAYS.tag(0), &[value("epoch", Int32), value("end_offset", Int64)]),
                    one("current_leader", ALWAYS.tag(1), &[value("leader_id", Int32), value("leader_epoch", Int32)]),
                    one("snapshot_id", ALWAYS.tag(2), &[value("end_offset", Int64), value("epoch", Int32)]),
                    structs(
                        "aborted_transactions",
                        ALWAYS.nullable(),
                        &[value("producer_id", Int64), value("first_offset", Int64)],
                    ),
                    value("preferred_read_replica", Int32),
                    value("records", Records).nullable(),
                ],
            ),
        ],
    ),
    structs(
        "node_endpoints",
        ALWAYS.tag(0),
        &[value("node_id", Int32), value("host", Text), value("port", Int32), value("rack", Text).nullable()],
    ),
];

pub static CREATE_TOPICS: &[Field] = &[
    value("throttle_time_ms", Int32),
    structs(
        "topics",
        ALWAYS,
        &[
            value("name", Text),
            value("topic_id", Uuid),
            value("error_code", Int16),
            value("error_message", Text).nullable(),
            value("topic_config_error_code", Int16).tag(0),
            value("num_partitions", Int32),
            value("replication_factor", Int16),
            structs(
                "configs",
                ALWAYS.nullable(),
                &[
                    value("name", Text),
                    value("value", Text).nullable(),
                    value("read_only", Bool),
                    value("config_source", Int8),
                    value("is_sensitive", Bool),
                ],
            ),
        ],
    ),
];

pub static ALTER_PARTITION: &[Field] = &[
    value("throttle_time_ms", Int32),
    value("error_code", Int16),
    structs(
        "topics",
        ALWAYS,
        &[
            value("topic_id", Uuid),
            structs(
                "partitions",
                ALWAYS,
                &[
                    value("partition_index", Int32),
                    value("error_code", Int16),
                    value("leader_id", Int32),
                    value("leader_epoch", Int32),
                    array("isr", Int32),
                    value("leader_recovery_state", Int8),
                    value("partition_epoch", Int32),
                ],
            ),
        ],
    ),
];

pub static BROKER_REGISTRATION: &[Field] =
    &[value("throttle_time_ms", Int32), value("error_code", Int16), value("broker_epoch", Int64)];

pub static BROKER_HEARTBEAT: &[Field] = &[
    value("throttle_time_ms", Int32),
    value("error_code", Int16),
    value("is_caught_up", Bool),
    value("is_fenced", Bool),
    value("should_shut_down", Bool),
];

pub static ALLOCATE_PRODUCER_IDS: &[Field] = &[
    value("throttle_time_ms", Int32),
    value("error_code", Int16),
    value("producer_id_start", Int64),
    value("producer_id_len", Int32),
];

pub static ASSIGN_REPLICAS_TO_DIRS: &[Field] = &[
    value("throttle_time_ms", Int32),
    value("error_code", Int16),
    structs(
        "directories",
        ALWAYS,
        &[
            value("id", Uuid),
            structs(
                "topics",
                ALWAYS,
                &[
                    value("topic_id", Uuid),
                    structs("partitions", ALWAYS, &[value("partition_index", Int32), value("error_code", Int16)]),
                ],
            ),
        ],
    ),
];
