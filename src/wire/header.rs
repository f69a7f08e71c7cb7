//! Request headers in, response headers out. Which header a request has depends on its API and version alone, so the first four
//! bytes decide how the rest is read.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::messages::StrBytes;
use super::table::{Api, keys, lookup};
use crate::base::limits::TAGGED_FIELDS_MAX;

#[derive(Clone, Debug)]
pub struct RequestHeader {
    pub api: &'static Api,
    pub version: i16,
    pub correlation_id: i32,
    /// Shares the frame's memory: copy it before keeping it. Bytes that are not UTF-8 are replaced, as Kafka does.
    pub client_id: Option<StrBytes>,
}

impl RequestHeader {
    /// An ApiVersions request in a version that we do not know: answered by [`super::api_versions::unsupported_version`] without a look
    /// at its body. The only API for which [`parse`] lets an unknown version through.
    pub fn needs_version_fallback(&self) -> bool {
        !self.api.accepts(self.version)
    }
}

/// Why a header could not be used, with as much of it as could be read, for the log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderError {
    pub api_key: Option<i16>,
    pub version: Option<i16>,
    pub client_id: Option<StrBytes>,
    pub fault: HeaderFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    TooShort,
    UnknownKey,
    NotServed,
    UnsupportedVersion,
    ClientIdLength(i16),
    Tags,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            HeaderFault::TooShort => f.write_str("request header is too short"),
            HeaderFault::UnknownKey => write!(f, "unknown API key {}", self.api_key.unwrap_or(-1)),
            HeaderFault::NotServed => write!(f, "API key {} is not served", self.api_key.unwrap_or(-1)),
            HeaderFault::UnsupportedVersion => {
                write!(f, "API key {} has no version {} here", self.api_key.unwrap_or(-1), self.version.unwrap_or(-1))
            }
            HeaderFault::ClientIdLength(length) => write!(f, "client id has length {length}"),
            HeaderFault::Tags => f.write_str("tagged fields of the request header cannot be read"),
        }
    }
}

impl std::error::Error for HeaderError {}

/// Splits a frame into its header and the body behind it.
pub fn parse(mut frame: Bytes) -> Result<(RequestHeader, Bytes), HeaderError> {
    let mut seen = HeaderError { api_key: None, version: None, client_id: None, fault: HeaderFault::TooShort };
    match read(&mut frame, &mut seen) {
        Ok(header) => Ok((header, frame)),
        Err(fault) => Err(HeaderError { fault, ..seen }),
    }
}

fn read(frame: &mut Bytes, seen: &mut HeaderError) -> Result<RequestHeader, HeaderFault> {
    let key = short(frame)?;
    seen.api_key = Some(key);
    let version = short(frame)?;
    seen.version = Some(version);
    let correlation_id = frame.try_get_i32().map_err(|_| HeaderFault::TooShort)?;
    let api = lookup(key).ok_or(HeaderFault::UnknownKey)?;
    let client_id = client_id(frame)?;
    seen.client_id.clone_from(&client_id);
    if api.is_flexible(version) {
        skip_tags(frame)?;
    }
    if !api.served {
        return Err(HeaderFault::NotServed);
    }
    if !api.accepts(version) && key != keys::API_VERSIONS {
        return Err(HeaderFault::UnsupportedVersion);
    }
    Ok(RequestHeader { api, version, correlation_id, client_id })
}

fn short(frame: &mut Bytes) -> Result<i16, HeaderFault> {
    frame.try_get_i16().map_err(|_| HeaderFault::TooShort)
}

/// In every header version an i16 length and the text; -1 is null.
fn client_id(frame: &mut Bytes) -> Result<Option<StrBytes>, HeaderFault> {
    let declared = short(frame)?;
    if declared == -1 {
        return Ok(None);
    }
    let length = usize::try_from(declared).map_err(|_| HeaderFault::ClientIdLength(declared))?;
    if length > frame.len() {
        return Err(HeaderFault::ClientIdLength(declared));
    }
    let bytes = frame.split_to(length);
    Ok(Some(match StrBytes::from_utf8(bytes.clone()) {
        Ok(text) => text,
        Err(_) => StrBytes::from_string(String::from_utf8_lossy(&bytes).into_owned()),
    }))
}

/// No header tag is known, all are skipped.
fn skip_tags(frame: &mut Bytes) -> Result<(), HeaderFault> {
    let count = varint(frame)?;
    if count > TAGGED_FIELDS_MAX {
        return Err(HeaderFault::Tags);
    }
    for _ in 0..count {
        varint(frame)?;
        let size = varint(frame)?;
        if size > frame.len() {
            return Err(HeaderFault::Tags);
        }
        frame.advance(size);
    }
    Ok(())
}

fn varint(frame: &mut Bytes) -> Result<usize, HeaderFault> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = frame.try_get_u8().map_err(|_| HeaderFault::Tags)?;
        if shift == 28 && byte > 0x0f {
            break;
        }
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value as usize);
        }
    }
    Err(HeaderFault::Tags)
}

/// Correlation id and, where the version has one, an empty tag section.
pub fn write_response_header(buffer: &mut BytesMut, api: &Api, version: i16, correlation_id: i32) {
    buffer.put_i32(correlation_id);
    if api.has_tagged_response_header(version) {
        buffer.put_u8(0);
    }
}
