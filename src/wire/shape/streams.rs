//! Requests of streams groups (KIP-1071). One line a field: name, kind, first and last version, nullable, tag. A field
//! without versions stands in every version of its structure; see [`super::Field`].

use super::Scalar::{Bool, Int8, Int16, Int32, Int64, Text, Uint16};
use super::{ALWAYS, Field, array, one, structs, value};

pub static STREAMS_GROUP_HEARTBEAT: &[Field] = &[
    value("group_id", Text),
    value("member_id", Text),
    value("member_epoch", Int32),
    value("endpoint_information_epoch", Int32),
    value("instance_id", Text).nullable(),
    value("rack_id", Text).nullable(),
    value("rebalance_timeout_ms", Int32),
    one(
        "topology",
        ALWAYS.nullable(),
        &[
            value("epoch", Int32),
            structs(
                "subtopologies",
                ALWAYS,
                &[
                    value("subtopology_id", Text),
                    array("source_topics", Text),
                    array("source_topic_regex", Text),
                    structs(
                        "state_changelog_topics",
                        ALWAYS,
                        &[
                            value("name", Text),
                            value("partitions", Int32),
                            value("replication_factor", Int16),
                            structs("topic_configs", ALWAYS, &[value("key", Text), value("value", Text)]),
                        ],
                    ),
                    array("repartition_sink_topics", Text),
                    structs(
                        "repartition_source_topics",
                        ALWAYS,
                        &[
                            value("name", Text),
                            value("partitions", Int32),
                            value("replication_factor", Int16),
                            structs("topic_configs", ALWAYS, &[value("key", Text), value("value", Text)]),
                        ],
                    ),
                    structs(
                        "copartition_groups",
                        ALWAYS,
                        &[
                            array("source_topics", Int16),
                            array("source_topic_regex", Int16),
                            array("repartition_source_topics", Int16),
                        ],
                    ),
                ],
            ),
        ],
    ),
    structs("active_tasks", ALWAYS.nullable(), &[value("subtopology_id", Text), array("partitions", Int32)]),
    structs("standby_tasks", ALWAYS.nullable(), &[value("subtopology_id", Text), array("partitions", Int32)]),
    structs("warmup_tasks", ALWAYS.nullable(), &[value("subtopology_id", Text), array("partitions", Int32)]),
    value("process_id", Text).nullable(),
    one("user_endpoint", ALWAYS.nullable(), &[value("host", Text), value("port", Uint16)]),
    structs("client_tags", ALWAYS.nullable(), &[value("key", Text), value("value", Text)]),
    structs(
        "task_offsets",
        ALWAYS.nullable(),
        &[value("subtopology_id", Text), value("partition", Int32), value("offset", Int64)],
    ),
    structs(
        "task_end_offsets",
        ALWAYS.nullable(),
        &[value("subtopology_id", Text), value("partition", Int32), value("offset", Int64)],
    ),
    value("shutdown_application", Bool),
];

pub static STREAMS_GROUP_DESCRIBE: &[Field] = &[
    array("group_ids", Text),
    value("include_authorized_operations", Bool),
    value("include_topology_description", Bool).since(1),
];

pub static STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: &[Field] = &[
    value("group_id", Text),
    value("member_id", Text),
    value("topology_epoch", Int32),
    one(
        "topology_description",
        ALWAYS,
        &[
            structs(
                "subtopologies",
                ALWAYS,
                &[
                    value("subtopology_id", Text),
                    structs(
                        "nodes",
                        ALWAYS,
                        &[
                            value("name", Text),
                            value("node_type", Int8),
                            array("source_topics", Text),
                            value("sink_topic", Text).nullable(),
                            array("stores", Text),
                            array("successors", Text),
                        ],
                    ),
                ],
            ),
            structs(
                "global_stores",
                ALWAYS,
                &[
                    one(
                        "source",
                        ALWAYS,
                        &[
                            value("name", Text),
                            value("node_type", Int8),
                            array("source_topics", Text),
                            value("sink_topic", Text).nullable(),
                            array("stores", Text),
                            array("successors", Text),
                        ],
                    ),
                    one(
                        "processor",
                        ALWAYS,
                        &[
                            value("name", Text),
                            value("node_type", Int8),
                            array("source_topics", Text),
                            value("sink_topic", Text).nullable(),
                            array("stores", Text),
                            array("successors", Text),
                        ],
                    ),
                ],
            ),
        ],
    ),
];
