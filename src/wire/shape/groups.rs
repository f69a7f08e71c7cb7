//! Requests of consumer groups, classic and KIP-848. One line a field: name, kind, first and last version, nullable, tag. A field
//! without versions stands in every version of its structure; see [`super::Field`].

use super::Scalar::{Bool, Bytes, Int8, Int32, Int64, Text, Uuid};
use super::{ALWAYS, Field, array, structs, value};

pub static FIND_COORDINATOR: &[Field] =
    &[value("key", Text).until(3), value("key_type", Int8).since(1), array("coordinator_keys", Text).since(4)];

pub static OFFSET_COMMIT: &[Field] = &[
    value("group_id", Text),
    value("generation_id_or_member_epoch", Int32),
    value("member_id", Text),
    value("retention_time_ms", Int64).until(4),
    value("group_instance_id", Text).since(7).nullable(),
    structs(
        "topics",
        ALWAYS,
        &[
            value("name", Text).until(9),
            value("topic_id", Uuid).since(10),
            structs(
                "partitions",
                ALWAYS,
                &[
                    value("partition_index", Int32),
                    value("committed_offset", Int64),
                    value("committed_leader_epoch", Int32).since(6),
                    value("committed_metadata", Text).nullable(),
                ],
            ),
        ],
    ),
];

pub static OFFSET_FETCH: &[Field] = &[
    value("group_id", Text).until(7),
    structs("topics", ALWAYS.until(7).nullable_since(2), &[value("name", Text), array("partition_indexes", Int32)]),
    structs(
        "groups",
        ALWAYS.since(8),
        &[
            value("group_id", Text),
            value("member_id", Text).since(9).nullable(),
            value("member_epoch", Int32).since(9),
            structs(
                "topics",
                ALWAYS.nullable(),
                &[value("name", Text).until(9), value("topic_id", Uuid).since(10), array("partition_indexes", Int32)],
            ),
        ],
    ),
    value("require_stable", Bool).since(7),
];

pub static JOIN_GROUP: &[Field] = &[
    value("group_id", Text),
    value("session_timeout_ms", Int32),
    value("rebalance_timeout_ms", Int32).since(1),
    value("member_id", Text),
    value("group_instance_id", Text).since(5).nullable(),
    value("protocol_type", Text),
    structs("protocols", ALWAYS, &[value("name", Text), value("metadata", Bytes)]),
    value("reason", Text).since(8).nullable(),
];

pub static HEARTBEAT: &[Field] = &[
    value("group_id", Text),
    value("generation_id", Int32),
    value("member_id", Text),
    value("group_instance_id", Text).since(3).nullable(),
];

pub static LEAVE_GROUP: &[Field] = &[
    value("group_id", Text),
    value("member_id", Text).until(2),
    structs(
        "members",
        ALWAYS.since(3),
        &[
            value("member_id", Text),
            value("group_instance_id", Text).nullable(),
            value("reason", Text).since(5).nullable(),
        ],
    ),
];

pub static SYNC_GROUP: &[Field] = &[
    value("group_id", Text),
    value("generation_id", Int32),
    value("member_id", Text),
    value("group_instance_id", Text).since(3).nullable(),
    value("protocol_type", Text).since(5).nullable(),
    value("protocol_name", Text).since(5).nullable(),
    structs("assignments", ALWAYS, &[value("member_id", Text), value("assignment", Bytes)]),
];

pub static DESCRIBE_GROUPS: &[Field] = &[array("groups", Text), value("include_authorized_operations", Bool).since(3)];

pub static LIST_GROUPS: &[Field] = &[array("states_filter", Text).since(4), array("types_filter", Text).since(5)];

pub static DELETE_GROUPS: &[Field] = &[array("groups_names", Text)];

pub static OFFSET_DELETE: &[Field] = &[
    value("group_id", Text),
    structs(
        "topics",
        ALWAYS,
        &[value("name", Text), structs("partitions", ALWAYS, &[value("partition_index", Int32)])],
    ),
];

pub static CONSUMER_GROUP_HEARTBEAT: &[Field] = &[
    value("group_id", Text),
    value("member_id", Text),
    value("member_epoch", Int32),
    value("instance_id", Text).nullable(),
    value("rack_id", Text).nullable(),
    value("rebalance_timeout_ms", Int32),
    array("subscribed_topic_names", Text).nullable(),
    value("subscribed_topic_regex", Text).since(1).nullable(),
    value("server_assignor", Text).nullable(),
    structs("topic_partitions", ALWAYS.nullable(), &[value("topic_id", Uuid), array("partitions", Int32)]),
];

pub static CONSUMER_GROUP_DESCRIBE: &[Field] =
    &[array("group_ids", Text), value("include_authorized_operations", Bool)];
