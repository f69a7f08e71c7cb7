//! Requests about the cluster itself. One line a field: name, kind, first and last version, nullable, tag. A field
//! without versions stands in every version of its structure; see [`super::Field`].

use super::Scalar::{Bool, Int8, Int16, Int32, Text, Uint16, Uuid};
use super::{ALWAYS, Field, structs, value};

pub static API_VERSIONS: &[Field] = &[
    value("client_software_name", Text).since(3),
    value("client_software_version", Text).since(3),
    value("cluster_id", Text).since(5).nullable(),
    value("node_id", Int32).since(5),
];

pub static DESCRIBE_QUORUM: &[Field] = &[structs(
    "topics",
    ALWAYS,
    &[value("topic_name", Text), structs("partitions", ALWAYS, &[value("partition_index", Int32)])],
)];

pub static UPDATE_FEATURES: &[Field] = &[
    value("timeout_ms", Int32),
    structs(
        "feature_updates",
        ALWAYS,
        &[
            value("feature", Text),
            value("max_version_level", Int16),
            value("allow_downgrade", Bool).until(0),
            value("upgrade_type", Int8).since(1),
        ],
    ),
    value("validate_only", Bool).since(1),
];

pub static DESCRIBE_CLUSTER: &[Field] = &[
    value("include_cluster_authorized_operations", Bool),
    value("endpoint_type", Int8).since(1),
    value("include_fenced_brokers", Bool).since(2),
];

pub static UNREGISTER_BROKER: &[Field] = &[value("broker_id", Int32)];

pub static ADD_RAFT_VOTER: &[Field] = &[
    value("cluster_id", Text).nullable(),
    value("timeout_ms", Int32),
    value("voter_id", Int32),
    value("voter_directory_id", Uuid),
    structs("listeners", ALWAYS, &[value("name", Text), value("host", Text), value("port", Uint16)]),
    value("ack_when_committed", Bool).since(1),
];

pub static REMOVE_RAFT_VOTER: &[Field] =
    &[value("cluster_id", Text).nullable(), value("voter_id", Int32), value("voter_directory_id", Uuid)];

pub static UNREGISTER_CONTROLLER: &[Field] = &[value("controller_id", Int32)];
