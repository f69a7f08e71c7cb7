//! DeleteGroupsResponse v0 to v3. v3 adds a message to each group's error code.

use bytes::{BufMut, BytesMut};

use super::write::{put_count, put_no_tags, put_text};
use crate::wire::messages::{GroupId, ResponseBody, StrBytes};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteGroupsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<DeletableGroupResult>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeletableGroupResult {
    pub group_id: GroupId,
    pub error_code: i16,
    /// Since v3; dropped in earlier versions.
    pub error_message: Option<StrBytes>,
}

impl ResponseBody for DeleteGroupsResponse {
    fn write(&self, version: i16, buffer: &mut BytesMut) -> Result<(), String> {
        let flexible = version >= 2;
        buffer.put_i32(self.throttle_time_ms);
        put_count(buffer, flexible, Some(self.results.len()))?;
        for result in &self.results {
            put_text(buffer, flexible, Some(&result.group_id))?;
            buffer.put_i16(result.error_code);
            if version >= 3 {
                put_text(buffer, flexible, result.error_message.as_deref())?;
            }
            put_no_tags(buffer, flexible);
        }
        put_no_tags(buffer, flexible);
        Ok(())
    }
}
