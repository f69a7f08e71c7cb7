//! Requests for records and offsets of partitions. One line a field: name, kind, first and last version, nullable, tag. A field
//! without versions stands in every version of its structure; see [`super::Field`].

use super::Scalar::{Bool, Int8, Int16, Int32, Int64, Records, Text, Uuid};
use super::{ALWAYS, Field, array, one, structs, value};

pub static PRODUCE: &[Field] = &[
    value("transactional_id", Text).nullable(),
    value("acks", Int16),
    value("timeout_ms", Int32),
    structs(
        "topic_data",
        ALWAYS,
        &[
            value("name", Text).until(12),
            value("topic_id", Uuid).since(13),
            structs("partition_data", ALWAYS, &[value("index", Int32), value("records", Records).nullable()]),
        ],
    ),
];

pub static FETCH: &[Field] = &[
    value("replica_id", Int32).until(14),
    value("max_wait_ms", Int32),
    value("min_bytes", Int32),
    value("max_bytes", Int32),
    value("isolation_level", Int8),
    value("session_id", Int32).since(7),
    value("session_epoch", Int32).since(7),
    structs(
        "topics",
        ALWAYS,
        &[
            value("topic", Text).until(12),
            value("topic_id", Uuid).since(13),
            structs(
                "partitions",
                ALWAYS,
                &[
                    value("partition", Int32),
                    value("current_leader_epoch", Int32).since(9),
                    value("fetch_offset", Int64),
                    value("last_fetched_epoch", Int32).since(12),
                    value("log_start_offset", Int64).since(5),
                    value("partition_max_bytes", Int32),
                    value("replica_directory_id", Uuid).since(17).tag(0),
                    value("high_watermark", Int64).since(18).tag(1),
                ],
            ),
        ],
    ),
    structs(
        "forgotten_topics_data",
        ALWAYS.since(7),
        &[value("topic", Text).until(12), value("topic_id", Uuid).since(13), array("partitions", Int32)],
    ),
    value("rack_id", Text).since(11),
    value("cluster_id", Text).since(12).nullable().tag(0),
    one("replica_state", ALWAYS.since(15).tag(1), &[value("replica_id", Int32), value("replica_epoch", Int64)]),
];

pub static LIST_OFFSETS: &[Field] = &[
    value("replica_id", Int32),
    value("isolation_level", Int8).since(2),
    structs(
        "topics",
        ALWAYS,
        &[
            value("name", Text),
            structs(
                "partitions",
                ALWAYS,
                &[
                    value("partition_index", Int32),
                    value("current_leader_epoch", Int32).since(4),
                    value("timestamp", Int64),
                ],
            ),
        ],
    ),
    value("timeout_ms", Int32).since(10),
];

pub static DELETE_RECORDS: &[Field] = &[
    structs(
        "topics",
        ALWAYS,
        &[
            value("name", Text),
            structs("partitions", ALWAYS, &[value("partition_index", Int32), value("offset", Int64)]),
        ],
    ),
    value("timeout_ms", Int32),
];

pub static INIT_PRODUCER_ID: &[Field] = &[
    value("transactional_id", Text).nullable(),
    value("transaction_timeout_ms", Int32),
    value("producer_id", Int64).since(3),
    value("producer_epoch", Int16).since(3),
    value("enable2_pc", Bool).since(6),
    value("keep_prepared_txn", Bool).since(6),
];

pub static OFFSET_FOR_LEADER_EPOCH: &[Field] = &[
    value("replica_id", Int32).since(3),
    structs(
        "topics",
        ALWAYS,
        &[
            value("topic", Text),
            structs(
                "partitions",
                ALWAYS,
                &[value("partition", Int32), value("current_leader_epoch", Int32), value("leader_epoch", Int32)],
            ),
        ],
    ),
];

pub static DESCRIBE_PRODUCERS: &[Field] =
    &[structs("topics", ALWAYS, &[value("name", Text), array("partition_indexes", Int32)])];
