//! Requests that brokers send to the active controller. One line a field: name, kind, first and last version, nullable, tag. A field
//! without versions stands in every version of its structure; see [`super::Field`].

use super::Scalar::{Bool, Int8, Int16, Int32, Int64, Text, Uint16, Uuid};
use super::{ALWAYS, Field, array, structs, value};

pub static ALTER_PARTITION: &[Field] = &[
    value("broker_id", Int32),
    value("broker_epoch", Int64),
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
                    value("leader_epoch", Int32),
                    array("new_isr", Int32).until(2),
                    structs(
                        "new_isr_with_epochs",
                        ALWAYS.since(3),
                        &[value("broker_id", Int32), value("broker_epoch", Int64)],
                    ),
                    value("leader_recovery_state", Int8),
                    value("partition_epoch", Int32),
                ],
            ),
        ],
    ),
];

pub static BROKER_REGISTRATION: &[Field] = &[
    value("broker_id", Int32),
    value("cluster_id", Text),
    value("incarnation_id", Uuid),
    structs(
        "listeners",
        ALWAYS,
        &[value("name", Text), value("host", Text), value("port", Uint16), value("security_protocol", Int16)],
    ),
    structs(
        "features",
        ALWAYS,
        &[value("name", Text), value("min_supported_version", Int16), value("max_supported_version", Int16)],
    ),
    value("rack", Text).nullable(),
    value("is_migrating_zk_broker", Bool).since(1),
    array("log_dirs", Uuid).since(2),
    value("previous_broker_epoch", Int64).since(3),
];

pub static BROKER_HEARTBEAT: &[Field] = &[
    value("broker_id", Int32),
    value("broker_epoch", Int64),
    value("current_metadata_offset", Int64),
    value("want_fence", Bool),
    value("want_shut_down", Bool),
    array("offline_log_dirs", Uuid).since(1).tag(0),
];

pub static ALLOCATE_PRODUCER_IDS: &[Field] = &[value("broker_id", Int32), value("broker_epoch", Int64)];

pub static ASSIGN_REPLICAS_TO_DIRS: &[Field] = &[
    value("broker_id", Int32),
    value("broker_epoch", Int64),
    structs(
        "directories",
        ALWAYS,
        &[
            value("id", Uuid),
            structs(
                "topics",
                ALWAYS,
                &[value("topic_id", Uuid), structs("partitions", ALWAYS, &[value("partition_index", Int32)])],
            ),
        ],
    ),
];
