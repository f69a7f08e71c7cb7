//! Which topic names are legal, which two would collide in metric names, and which topics belong to the broker itself.

use crate::base::limits::TOPIC_NAME_CHARS_MAX;

pub const CONSUMER_OFFSETS: &str = "__consumer_offsets";
pub const TRANSACTION_STATE: &str = "__transaction_state";
pub const SHARE_GROUP_STATE: &str = "__share_group_state";
/// The metadata log's name where an API needs one. No topic of that name can be made.
pub const CLUSTER_METADATA: &str = "__cluster_metadata";

/// Whether clients see the topic marked as internal.
pub fn is_internal(name: &str) -> bool {
    matches!(name, CONSUMER_OFFSETS | TRANSACTION_STATE | SHARE_GROUP_STATE)
}

/// Says in a sentence why a name is illegal.
pub fn validate(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("Topic name is invalid: the empty string is not allowed".to_owned());
    }
    if name == "." || name == ".." {
        return Err(format!("Topic name is invalid: '{name}' is not allowed"));
    }
    let length = name.encode_utf16().count();
    if length > TOPIC_NAME_CHARS_MAX {
        let shown: String = name.chars().take(TOPIC_NAME_CHARS_MAX).collect();
        return Err(format!(
            "Topic name is invalid: the length of '{shown}' ({length}) is longer than the max allowed length \
             {TOPIC_NAME_CHARS_MAX}"
        ));
    }
    if !name.bytes().all(is_legal_byte) {
        return Err(format!(
            "Topic name is invalid: '{}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
            name.escape_debug()
        ));
    }
    Ok(())
}

fn is_legal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// The form in which two names that differ only by dots and underscores are equal.
pub fn collision_key(name: &str) -> String {
    name.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names() {
        for name in ["a", "a.b_c-D9", "...", "__consumer_offsets", &"n".repeat(249)] {
            assert_eq!(validate(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn illegal_names() {
        for name in ["", ".", "..", "a/b", "a b", "a\0", "é", "a\n", "a%d", &"n".repeat(250)] {
            assert!(validate(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn dots_and_underscores_collide() {
        assert_eq!(collision_key("a.b_c"), collision_key("a_b.c"));
        assert_ne!(collision_key("a.b"), collision_key("a-b"));
    }

    #[test]
    fn three_topics_are_internal() {
        assert!(is_internal("__consumer_offsets"));
        assert!(!is_internal("__mine"));
    }
}
