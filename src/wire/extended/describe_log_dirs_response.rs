//! DescribeLogDirsResponse v1 to v5. v3 adds the error code of the whole, v4 the sizes of the file system (KIP-827), v5 whether the
//! directory takes new partitions (KIP-1066).

use bytes::{BufMut, BytesMut};
use kafka_protocol::protocol::Encodable;

use super::write::{put_count, put_no_tags, put_text};
use crate::wire::messages::{ResponseBody, StrBytes};

pub use kafka_protocol::messages::describe_log_dirs_response::{DescribeLogDirsPartition, DescribeLogDirsTopic};

/// The newest version whose topics are laid out as the crate knows them.
const TOPIC_LAYOUT_MAX: i16 = 4;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeLogDirsResponse {
    pub throttle_time_ms: i32,
    /// Since v3.
    pub error_code: i16,
    pub results: Vec<DescribeLogDirsResult>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeLogDirsResult {
    pub error_code: i16,
    /// Absolute path.
    pub log_dir: StrBytes,
    pub topics: Vec<DescribeLogDirsTopic>,
    /// Since v4; -1 when unknown.
    pub total_bytes: i64,
    /// Since v4; -1 when unknown.
    pub usable_bytes: i64,
    /// Since v5: no new partitions are placed here.
    pub is_cordoned: bool,
}

impl Default for DescribeLogDirsResult {
    fn default() -> DescribeLogDirsResult {
        DescribeLogDirsResult {
            error_code: 0,
            log_dir: StrBytes::default(),
            topics: Vec::new(),
            total_bytes: -1,
            usable_bytes: -1,
            is_cordoned: false,
        }
    }
}

impl ResponseBody for DescribeLogDirsResponse {
    fn write(&self, version: i16, buffer: &mut BytesMut) -> Result<(), String> {
        let flexible = version >= 2;
        buffer.put_i32(self.throttle_time_ms);
        if version >= 3 {
            buffer.put_i16(self.error_code);
        }
        put_count(buffer, flexible, Some(self.results.len()))?;
        for result in &self.results {
            result.write(version, flexible, buffer)?;
        }
        put_no_tags(buffer, flexible);
        Ok(())
    }
}

impl DescribeLogDirsResult {
    fn write(&self, version: i16, flexible: bool, buffer: &mut BytesMut) -> Result<(), String> {
        buffer.put_i16(self.error_code);
        put_text(buffer, flexible, Some(&self.log_dir))?;
        put_count(buffer, flexible, Some(self.topics.len()))?;
        for topic in &self.topics {
            topic.encode(buffer, version.min(TOPIC_LAYOUT_MAX)).map_err(|error| error.to_string())?;
        }
        if version >= 4 {
            buffer.put_i64(self.total_bytes);
            buffer.put_i64(self.usable_bytes);
        }
        if version >= 5 {
            buffer.put_u8(u8::from(self.is_cordoned));
        }
        put_no_tags(buffer, flexible);
        Ok(())
    }
}
