//! Which operations a client may do, as the bit fields of KIP-430. There is no authorizer yet: everybody may do everything that
//! makes sense on a resource.

/// `AclOperation` numbers of the protocol.
const READ: i32 = 3;
const WRITE: i32 = 4;
const CREATE: i32 = 5;
const DELETE: i32 = 6;
const ALTER: i32 = 7;
const DESCRIBE: i32 = 8;
const CLUSTER_ACTION: i32 = 9;
const DESCRIBE_CONFIGS: i32 = 10;
const ALTER_CONFIGS: i32 = 11;
const IDEMPOTENT_WRITE: i32 = 12;

/// The field's value when nobody asked.
pub const NOT_ASKED: i32 = i32::MIN;

pub const ON_TOPIC: i32 = bits(&[READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]);

pub const ON_CLUSTER: i32 =
    bits(&[CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE]);

const fn bits(operations: &[i32]) -> i32 {
    let mut field = 0;
    let mut at = 0;
    while at < operations.len() {
        field |= 1 << operations[at];
        at += 1;
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_kafka_answers_them() {
        assert_eq!((ON_TOPIC, ON_CLUSTER), (3576, 8096));
    }
}
