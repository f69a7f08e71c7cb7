//! Requests of transactions. One line a field: name, kind, first and last version, nullable, tag. A field
//! without versions stands in every version of its structure; see [`super::Field`].

use super::Scalar::{Bool, Int8, Int16, Int32, Int64, Text, Uuid};
use super::{ALWAYS, Field, array, structs, value};

pub static ADD_PARTITIONS_TO_TXN: &[Field] = &[
    value("v3_and_below_transactional_id", Text).until(3),
    value("v3_and_below_producer_id", Int64).until(3),
    value("v3_and_below_producer_epoch", Int16).until(3),
    structs("v3_and_below_topics", ALWAYS.until(3), &[value("name", Text), array("partitions", Int32)]),
    structs(
        "transactions",
        ALWAYS.since(4),
        &[
            value("transactional_id", Text),
            value("producer_id", Int64),
            value("producer_epoch", Int16),
            value("verify_only", Bool),
            structs("topics", ALWAYS, &[value("name", Text), array("partitions", Int32)]),
        ],
    ),
];

pub static ADD_OFFSETS_TO_TXN: &[Field] = &[
    value("transactional_id", Text),
    value("producer_id", Int64),
    value("producer_epoch", Int16),
    value("group_id", Text),
];

pub static END_TXN: &[Field] = &[
    value("transactional_id", Text),
    value("producer_id", Int64),
    value("producer_epoch", Int16),
    value("committed", Bool),
];

pub static WRITE_TXN_MARKERS: &[Field] = &[structs(
    "markers",
    ALWAYS,
    &[
        value("producer_id", Int64),
        value("producer_epoch", Int16),
        value("transaction_result", Bool),
        structs("topics", ALWAYS, &[value("name", Text), array("partition_indexes", Int32)]),
        value("coordinator_epoch", Int32),
        value("transaction_version", Int8).since(2),
    ],
)];

pub static TXN_OFFSET_COMMIT: &[Field] = &[
    value("transactional_id", Text),
    value("group_id", Text),
    value("producer_id", Int64),
    value("producer_epoch", Int16),
    value("generation_id_or_member_epoch", Int32).since(3),
    value("member_id", Text).since(3),
    value("group_instance_id", Text).since(3).nullable(),
    structs(
        "topics",
        ALWAYS,
        &[
            value("name", Text).until(5),
            value("topic_id", Uuid).since(6),
            structs(
                "partitions",
                ALWAYS,
                &[
                    value("partition_index", Int32),
                    value("committed_offset", Int64),
                    value("committed_leader_epoch", Int32).since(2),
                    value("committed_metadata", Text).nullable(),
                ],
            ),
        ],
    ),
];

pub static DESCRIBE_TRANSACTIONS: &[Field] = &[array("transactional_ids", Text)];

pub static LIST_TRANSACTIONS: &[Field] = &[
    array("state_filters", Text),
    array("producer_id_filters", Int64),
    value("duration_filter", Int64).since(1),
    value("transactional_id_pattern", Text).since(2).nullable(),
];
