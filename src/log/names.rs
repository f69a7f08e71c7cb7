//! How the files of a partition directory are called. The names are Kafka's (`LogFileUtils`), so that its tools find their way.

use crate::base::Offset;

pub const LEADER_EPOCHS: &str = "leader-epoch-checkpoint";
pub const PARTITION_METADATA: &str = "partition.metadata";

pub const LOG: &str = "log";
pub const INDEX: &str = "index";
pub const TIME_INDEX: &str = "timeindex";
pub const TXN_INDEX: &str = "txnindex";
pub const SNAPSHOT: &str = "snapshot";

/// Behind the name of a file that waits for its removal.
pub const DELETED: &str = ".deleted";
/// Behind the name of a file that is being written.
pub const ASIDE: &str = ".tmp";
/// Kafka's suffix for a compaction's unfinished output.
pub const CLEANED: &str = ".cleaned";

/// `00000000000000000042.log` for 42 and `log`.
pub fn offset_file(offset: Offset, kind: &str) -> String {
    format!("{offset:020}.{kind}")
}

/// The offset and kind of a name that [`offset_file`] makes.
pub fn parse_offset_file(name: &str) -> Option<(Offset, &str)> {
    let (digits, kind) = name.split_once('.')?;
    if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_strangers_are_none() {
        assert_eq!(parse_offset_file(&offset_file(42, LOG)), Some((42, "log")));
        assert_eq!(parse_offset_file("00000000000000000042.log.deleted"), Some((42, "log.deleted")));
        for name in ["42.log", "0000000000000000004x.log", "99999999999999999999.log", "leader-epoch-checkpoint", ""] {
            assert_eq!(parse_offset_file(name), None, "{name}");
        }
    }
}
