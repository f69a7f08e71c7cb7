//! ApiVersionsRequest v0 to v5. Since v3 the client names its software (KIP-511); since v5 it may name the cluster and node that it
//! believes to talk to (KIP-1242).

use bytes::{Buf, Bytes};

use crate::wire::messages::{RequestBody, StrBytes};
use crate::wire::table::keys;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiVersionsRequest {
    /// Since v3, else empty.
    pub client_software_name: StrBytes,
    /// Since v3, else empty.
    pub client_software_version: StrBytes,
    /// Since v5, else `None`.
    pub cluster_id: Option<StrBytes>,
    /// Since v5; -1 for none.
    pub node_id: i32,
}

impl Default for ApiVersionsRequest {
    fn default() -> ApiVersionsRequest {
        ApiVersionsRequest {
            client_software_name: StrBytes::default(),
            client_software_version: StrBytes::default(),
            cluster_id: None,
            node_id: -1,
        }
    }
}

impl RequestBody for ApiVersionsRequest {
    const KEY: i16 = keys::API_VERSIONS;

    fn read(version: i16, mut body: Bytes) -> Result<Self, String> {
        let mut request = ApiVersionsRequest::default();
        if version >= 3 {
            request.client_software_name = text(&mut body)?.ok_or("client software name is null")?;
            request.client_software_version = text(&mut body)?.ok_or("client software version is null")?;
        }
        if version >= 5 {
            request.cluster_id = text(&mut body)?;
            request.node_id = body.try_get_i32().map_err(|error| error.to_string())?;
        }
        Ok(request)
    }
}

/// A nullable compact text.
fn text(body: &mut Bytes) -> Result<Option<StrBytes>, String> {
    let Some(length) = varint(body)?.checked_sub(1) else { return Ok(None) };
    let length = length as usize;
    if length > body.len() {
        return Err(format!("string of {length} bytes in {} bytes", body.len()));
    }
    StrBytes::from_utf8(body.split_to(length)).map(Some).map_err(|error| error.to_string())
}

/// The shape check has refused varints of more than 32 bits.
fn varint(body: &mut Bytes) -> Result<u32, String> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = body.try_get_u8().map_err(|error| error.to_string())?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    Ok(value)
}
