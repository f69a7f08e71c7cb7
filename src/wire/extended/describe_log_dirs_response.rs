//! DescribeLogDirsResponse v1 to v5. v3 adds the error code of the whole, v4 the sizes of the file system (KIP-827), v5 whether the
//! directory takes new partitions (KIP-1066).

use super::codec::message;
use crate::wire::messages::{StrBytes, TopicName};

message! {
    DescribeLogDirsResponse {
        throttle_time_ms: i32;
        error_code: i16 [3..];
        results: Vec<DescribeLogDirsResult>;
    }

    DescribeLogDirsResult {
        error_code: i16;
        log_dir: StrBytes;
        topics: Vec<DescribeLogDirsTopic>;
        total_bytes: i64 [4..] = -1;
        usable_bytes: i64 [4..] = -1;
        is_cordoned: bool [5..];
    }

    DescribeLogDirsTopic {
        name: TopicName;
        partitions: Vec<DescribeLogDirsPartition>;
    }

    DescribeLogDirsPartition {
        partition_index: i32;
        partition_size: i64;
        offset_lag: i64;
        is_future_key: bool;
    }
}
