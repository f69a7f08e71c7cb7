//! From a topic's settings to the rules that its producers' batches must obey.

use crate::metadata::config::{CompressionType, LogConfig, MessageTimestampType};
use crate::records::{AppendRules, Codec, TargetCodec, TimestampType};

/// The codec's own choice of level.
const DEFAULT_LEVEL: i32 = 0;

pub fn append_rules(config: &LogConfig) -> AppendRules {
    AppendRules {
        compacted: config.cleanup.compact,
        timestamp_type: match config.message_timestamp_type {
            MessageTimestampType::CreateTime => TimestampType::CreateTime,
            MessageTimestampType::LogAppendTime => TimestampType::LogAppendTime,
        },
        before_max_ms: config.message_timestamp_before_max_ms,
        after_max_ms: config.message_timestamp_after_max_ms,
        target_codec: match config.compression {
            CompressionType::Producer => TargetCodec::Producer,
            CompressionType::Uncompressed => TargetCodec::Fixed { codec: Codec::None, level: DEFAULT_LEVEL },
            CompressionType::Gzip { level } => TargetCodec::Fixed { codec: Codec::Gzip, level },
            CompressionType::Snappy => TargetCodec::Fixed { codec: Codec::Snappy, level: DEFAULT_LEVEL },
            CompressionType::Lz4 { level } => TargetCodec::Fixed { codec: Codec::Lz4, level },
            CompressionType::Zstd { level } => TargetCodec::Fixed { codec: Codec::Zstd, level },
        },
        batch_bytes_max: config.max_message_bytes,
        decompressed_bytes_max: config.max_decompressed_message_bytes,
    }
}
