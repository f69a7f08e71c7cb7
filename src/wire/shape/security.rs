//! Requests about authentication, access lists and credentials. One line a field: name, kind, first and last version, nullable, tag. A field
//! without versions stands in every version of its structure; see [`super::Field`].

use super::Scalar::{Bytes, Int8, Int32, Int64, Text};
use super::{ALWAYS, Field, structs, value};

pub static SASL_HANDSHAKE: &[Field] = &[value("mechanism", Text)];

pub static SASL_AUTHENTICATE: &[Field] = &[value("auth_bytes", Bytes)];

pub static DESCRIBE_ACLS: &[Field] = &[
    value("resource_type_filter", Int8),
    value("resource_name_filter", Text).nullable(),
    value("pattern_type_filter", Int8),
    value("principal_filter", Text).nullable(),
    value("host_filter", Text).nullable(),
    value("operation", Int8),
    value("permission_type", Int8),
];

pub static CREATE_ACLS: &[Field] = &[structs(
    "creations",
    ALWAYS,
    &[
        value("resource_type", Int8),
        value("resource_name", Text),
        value("resource_pattern_type", Int8),
        value("principal", Text),
        value("host", Text),
        value("operation", Int8),
        value("permission_type", Int8),
    ],
)];

pub static DELETE_ACLS: &[Field] = &[structs(
    "filters",
    ALWAYS,
    &[
        value("resource_type_filter", Int8),
        value("resource_name_filter", Text).nullable(),
        value("pattern_type_filter", Int8),
        value("principal_filter", Text).nullable(),
        value("host_filter", Text).nullable(),
        value("operation", Int8),
        value("permission_type", Int8),
    ],
)];

pub static CREATE_DELEGATION_TOKEN: &[Field] = &[
    value("owner_principal_type", Text).since(3).nullable(),
    value("owner_principal_name", Text).since(3).nullable(),
    structs("renewers", ALWAYS, &[value("principal_type", Text), value("principal_name", Text)]),
    value("max_lifetime_ms", Int64),
];

pub static RENEW_DELEGATION_TOKEN: &[Field] = &[value("hmac", Bytes), value("renew_period_ms", Int64)];

pub static EXPIRE_DELEGATION_TOKEN: &[Field] = &[value("hmac", Bytes), value("expiry_time_period_ms", Int64)];

pub static DESCRIBE_DELEGATION_TOKEN: &[Field] =
    &[structs("owners", ALWAYS.nullable(), &[value("principal_type", Text), value("principal_name", Text)])];

pub static DESCRIBE_USER_SCRAM_CREDENTIALS: &[Field] = &[structs("users", ALWAYS.nullable(), &[value("name", Text)])];

pub static ALTER_USER_SCRAM_CREDENTIALS: &[Field] = &[
    structs("deletions", ALWAYS, &[value("name", Text), value("mechanism", Int8)]),
    structs(
        "upsertions",
        ALWAYS,
        &[
            value("name", Text),
            value("mechanism", Int8),
            value("iterations", Int32),
            value("salt", Bytes),
            value("salted_password", Bytes),
        ],
    ),
];
