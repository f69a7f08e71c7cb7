//! Requests about settings, quotas and client metrics. One line a field: name, kind, first and last version, nullable, tag. A field
//! without versions stands in every version of its structure; see [`super::Field`].

use super::Scalar::{Bool, Bytes, Float64, Int8, Int32, Text, Uuid};
use super::{ALWAYS, Field, array, structs, value};

pub static DESCRIBE_CONFIGS: &[Field] = &[
    structs(
        "resources",
        ALWAYS,
        &[value("resource_type", Int8), value("resource_name", Text), array("configuration_keys", Text).nullable()],
    ),
    value("include_synonyms", Bool),
    value("include_documentation", Bool).since(3),
];

pub static ALTER_CONFIGS: &[Field] = &[
    structs(
        "resources",
        ALWAYS,
        &[
            value("resource_type", Int8),
            value("resource_name", Text),
            structs("configs", ALWAYS, &[value("name", Text), value("value", Text).nullable()]),
        ],
    ),
    value("validate_only", Bool),
];

pub static INCREMENTAL_ALTER_CONFIGS: &[Field] = &[
    structs(
        "resources",
        ALWAYS,
        &[
            value("resource_type", Int8),
            value("resource_name", Text),
            structs(
                "configs",
                ALWAYS,
                &[value("name", Text), value("config_operation", Int8), value("value", Text).nullable()],
            ),
        ],
    ),
    value("validate_only", Bool),
];

pub static LIST_CONFIG_RESOURCES: &[Field] = &[array("resource_types", Int8).since(1)];

pub static DESCRIBE_CLIENT_QUOTAS: &[Field] = &[
    structs(
        "components",
        ALWAYS,
        &[value("entity_type", Text), value("match_type", Int8), value("match", Text).nullable()],
    ),
    value("strict", Bool),
];

pub static ALTER_CLIENT_QUOTAS: &[Field] = &[
    structs(
        "entries",
        ALWAYS,
        &[
            structs("entity", ALWAYS, &[value("entity_type", Text), value("entity_name", Text).nullable()]),
            structs("ops", ALWAYS, &[value("key", Text), value("value", Float64), value("remove", Bool)]),
        ],
    ),
    value("validate_only", Bool),
];

pub static GET_TELEMETRY_SUBSCRIPTIONS: &[Field] = &[value("client_instance_id", Uuid)];

pub static PUSH_TELEMETRY: &[Field] = &[
    value("client_instance_id", Uuid),
    value("subscription_id", Int32),
    value("terminating", Bool),
    value("compression_type", Int8),
    value("metrics", Bytes),
];
