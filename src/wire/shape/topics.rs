//! Requests about topics, their partitions and replicas. One line a field: name, kind, first and last version, nullable, tag. A field
//! without versions stands in every version of its structure; see [`super::Field`].

use super::Scalar::{Bool, Int8, Int16, Int32, Text, Uuid};
use super::{ALWAYS, Field, array, one, structs, value};

pub static METADATA: &[Field] = &[
    structs(
        "topics",
        ALWAYS.nullable_since(1),
        &[value("topic_id", Uuid).since(10), value("name", Text).nullable_since(10)],
    ),
    value("allow_auto_topic_creation", Bool).since(4),
    value("include_cluster_authorized_operations", Bool).since(8).until(10),
    value("include_topic_authorized_operations", Bool).since(8),
];

pub static CREATE_TOPICS: &[Field] = &[
    structs(
        "topics",
        ALWAYS,
        &[
            value("name", Text),
            value("num_partitions", Int32),
            value("replication_factor", Int16),
            structs("assignments", ALWAYS, &[value("partition_index", Int32), array("broker_ids", Int32)]),
            structs("configs", ALWAYS, &[value("name", Text), value("value", Text).nullable()]),
        ],
    ),
    value("timeout_ms", Int32),
    value("validate_only", Bool),
];

pub static DELETE_TOPICS: &[Field] = &[
    array("topic_names", Text).until(5),
    structs("topics", ALWAYS.since(6), &[value("name", Text).nullable(), value("topic_id", Uuid)]),
    value("timeout_ms", Int32),
];

pub static CREATE_PARTITIONS: &[Field] = &[
    structs(
        "topics",
        ALWAYS,
        &[
            value("name", Text),
            value("count", Int32),
            structs("assignments", ALWAYS.nullable(), &[array("broker_ids", Int32)]),
        ],
    ),
    value("timeout_ms", Int32),
    value("validate_only", Bool),
];

pub static DESCRIBE_TOPIC_PARTITIONS: &[Field] = &[
    structs("topics", ALWAYS, &[value("name", Text)]),
    value("response_partition_limit", Int32),
    one("cursor", ALWAYS.nullable(), &[value("topic_name", Text), value("partition_index", Int32)]),
];

pub static ALTER_REPLICA_LOG_DIRS: &[Field] = &[structs(
    "dirs",
    ALWAYS,
    &[value("path", Text), structs("topics", ALWAYS, &[value("name", Text), array("partitions", Int32)])],
)];

pub static DESCRIBE_LOG_DIRS: &[Field] =
    &[structs("topics", ALWAYS.nullable(), &[value("topic", Text), array("partitions", Int32)])];

pub static ELECT_LEADERS: &[Field] = &[
    value("election_type", Int8).since(1),
    structs("topic_partitions", ALWAYS.nullable(), &[value("topic", Text), array("partitions", Int32)]),
    value("timeout_ms", Int32),
];

pub static ALTER_PARTITION_REASSIGNMENTS: &[Field] = &[
    value("timeout_ms", Int32),
    value("allow_replication_factor_change", Bool).since(1),
    structs(
        "topics",
        ALWAYS,
        &[
            value("name", Text),
            structs("partitions", ALWAYS, &[value("partition_index", Int32), array("replicas", Int32).nullable()]),
        ],
    ),
];

pub static LIST_PARTITION_REASSIGNMENTS: &[Field] = &[
    value("timeout_ms", Int32),
    structs("topics", ALWAYS.nullable(), &[value("name", Text), array("partition_indexes", Int32)]),
];
