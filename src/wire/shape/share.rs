//! Requests of share groups (KIP-932) and of their state. One line a field: name, kind, first and last version, nullable, tag. A field
//! without versions stands in every version of its structure; see [`super::Field`].

use super::Scalar::{Bool, Int8, Int16, Int32, Int64, Text, Uuid};
use super::{ALWAYS, Field, array, structs, value};

pub static SHARE_GROUP_HEARTBEAT: &[Field] = &[
    value("group_id", Text),
    value("member_id", Text),
    value("member_epoch", Int32),
    value("rack_id", Text).nullable(),
    array("subscribed_topic_names", Text).nullable(),
];

pub static SHARE_GROUP_DESCRIBE: &[Field] = &[array("group_ids", Text), value("include_authorized_operations", Bool)];

pub static SHARE_FETCH: &[Field] = &[
    value("group_id", Text).nullable(),
    value("member_id", Text).nullable(),
    value("share_session_epoch", Int32),
    value("max_wait_ms", Int32),
    value("min_bytes", Int32),
    value("max_bytes", Int32),
    value("max_records", Int32),
    value("batch_size", Int32),
    value("share_acquire_mode", Int8).since(2),
    value("is_renew_ack", Bool).since(2),
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
                    structs(
                        "acknowledgement_batches",
                        ALWAYS,
                        &[value("first_offset", Int64), value("last_offset", Int64), array("acknowledge_types", Int8)],
                    ),
                ],
            ),
        ],
    ),
    structs("forgotten_topics_data", ALWAYS, &[value("topic_id", Uuid), array("partitions", Int32)]),
];

pub static SHARE_ACKNOWLEDGE: &[Field] = &[
    value("group_id", Text).nullable(),
    value("member_id", Text).nullable(),
    value("share_session_epoch", Int32),
    value("is_renew_ack", Bool).since(2),
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
                    structs(
                        "acknowledgement_batches",
                        ALWAYS,
                        &[value("first_offset", Int64), value("last_offset", Int64), array("acknowledge_types", Int8)],
                    ),
                ],
            ),
        ],
    ),
];

pub static INITIALIZE_SHARE_GROUP_STATE: &[Field] = &[
    value("group_id", Text),
    structs(
        "topics",
        ALWAYS,
        &[
            value("topic_id", Uuid),
            structs(
                "partitions",
                ALWAYS,
                &[value("partition", Int32), value("state_epoch", Int32), value("start_offset", Int64)],
            ),
        ],
    ),
];

pub static READ_SHARE_GROUP_STATE: &[Field] = &[
    value("group_id", Text),
    structs(
        "topics",
        ALWAYS,
        &[
            value("topic_id", Uuid),
            structs("partitions", ALWAYS, &[value("partition", Int32), value("leader_epoch", Int32)]),
        ],
    ),
];

pub static WRITE_SHARE_GROUP_STATE: &[Field] = &[
    value("group_id", Text),
    structs(
        "topics",
        ALWAYS,
        &[
            value("topic_id", Uuid),
            structs(
                "partitions",
                ALWAYS,
                &[
                    value("partition", Int32),
                    value("state_epoch", Int32),
                    value("leader_epoch", Int32),
                    value("start_offset", Int64),
                    value("delivery_complete_count", Int32).since(1),
                    structs(
                        "state_batches",
                        ALWAYS,
                        &[
                            value("first_offset", Int64),
                            value("last_offset", Int64),
                            value("delivery_state", Int8),
                            value("delivery_count", Int16),
                        ],
                    ),
                ],
            ),
        ],
    ),
];

pub static DELETE_SHARE_GROUP_STATE: &[Field] = &[
    value("group_id", Text),
    structs("topics", ALWAYS, &[value("topic_id", Uuid), structs("partitions", ALWAYS, &[value("partition", Int32)])]),
];

pub static READ_SHARE_GROUP_STATE_SUMMARY: &[Field] = &[
    value("group_id", Text),
    structs(
        "topics",
        ALWAYS,
        &[
            value("topic_id", Uuid),
            structs("partitions", ALWAYS, &[value("partition", Int32), value("leader_epoch", Int32)]),
        ],
    ),
];

pub static DESCRIBE_SHARE_GROUP_OFFSETS: &[Field] = &[structs(
    "groups",
    ALWAYS,
    &[
        value("group_id", Text),
        structs("topics", ALWAYS.nullable(), &[value("topic_name", Text), array("partitions", Int32)]),
    ],
)];

pub static ALTER_SHARE_GROUP_OFFSETS: &[Field] = &[
    value("group_id", Text),
    structs(
        "topics",
        ALWAYS,
        &[
            value("topic_name", Text),
            structs("partitions", ALWAYS, &[value("partition_index", Int32), value("start_offset", Int64)]),
        ],
    ),
];

pub static DELETE_SHARE_GROUP_OFFSETS: &[Field] =
    &[value("group_id", Text), structs("topics", ALWAYS, &[value("topic_name", Text)])];
