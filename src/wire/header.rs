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
    match judge(api, version, frame) {
        Ok(()) => Ok(RequestHeader { api, version, correlation_id, client_id }),
        Err(fault) => {
            seen.client_id = client_id;
            Err(fault)
        }
    }
}

fn judge(api: &Api, version: i16, frame: &mut Bytes) -> Result<(), HeaderFault> {
    if api.is_flexible(version) {
        skip_tags(frame)?;
    }
    if !api.served {
        return Err(HeaderFault::NotServed);
    }
    if !api.accepts(version) && api.key != keys::API_VERSIONS {
        return Err(HeaderFault::UnsupportedVersion);
    }
    Ok(())
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
pub(super) fn skip_tags(frame: &mut Bytes) -> Result<(), HeaderFault> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_hex(hex: &str) -> Result<(RequestHeader, Bytes), HeaderError> {
        let hex = hex.replace(' ', "");
        parse((0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect())
    }

    fn accepted(hex: &str) -> (RequestHeader, Bytes) {
        parse_hex(hex).unwrap()
    }

    fn fault(hex: &str) -> HeaderFault {
        parse_hex(hex).unwrap_err().fault
    }

    #[test]
    fn a_plain_header_is_read_and_the_body_is_left() {
        let (header, body) = accepted("0002 0001 80000000 0003 726177 ffffffff 00000000");
        assert_eq!((header.api.name, header.version, header.correlation_id), ("ListOffsets", 1, i32::MIN));
        assert_eq!(header.client_id.as_deref(), Some("raw"));
        assert_eq!(&body[..], [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
        assert!(!header.needs_version_fallback());
    }

    #[test]
    fn client_ids_may_be_null_empty_odd_or_not_utf8() {
        let client = |hex: &str| accepted(hex).0.client_id.map(|id| id.to_string());
        assert_eq!(client("0002 0001 ffffffff ffff"), None);
        assert_eq!(client("0002 0001 00000000 0000"), Some(String::new()));
        assert_eq!(client("0002 0001 00000000 0003 610062"), Some("a\0b".to_owned()));
        assert_eq!(client("0002 0001 00000000 0002 c3a9"), Some("\u{e9}".to_owned()));
        assert_eq!(client("0002 0001 00000000 0002 fffe"), Some("\u{fffd}\u{fffd}".to_owned()));
    }

    #[test]
    fn header_tags_are_skipped_and_lies_in_them_refused() {
        let (_, body) = accepted("0002 0006 00000012 0003 726177 01 65 02 abcd 07");
        assert_eq!(&body[..], [7]);
        assert_eq!(fault("0002 0006 00000012 0003 726177 01 65 03 abcd"), HeaderFault::Tags);
        assert_eq!(fault("0002 0006 00000012 0003 726177 ffffffff0f"), HeaderFault::Tags);
        assert_eq!(fault("0002 0006 00000012 0003 726177 ffffffffff01"), HeaderFault::Tags);
        assert_eq!(fault("0002 0006 00000012 0003 726177"), HeaderFault::Tags);
    }

    #[test]
    fn headers_that_end_early_are_refused() {
        for hex in ["", "00", "0002", "0002 0001", "0002 0001 00000019", "0002 0001 00000019 00"] {
            assert_eq!(fault(hex), HeaderFault::TooShort, "{hex}");
        }
        assert_eq!(fault("0002 0001 00000019 0004 726177"), HeaderFault::ClientIdLength(4));
        assert_eq!(fault("0002 0001 00000019 8000 726177"), HeaderFault::ClientIdLength(i16::MIN));
    }

    #[test]
    fn unknown_keys_and_versions_are_refused_and_named() {
        for key in ["7fff", "ffff", "0007", "0034", "0046", "0052"] {
            assert_eq!(fault(&format!("{key} 0000 00000000 0003 726177 00")), HeaderFault::UnknownKey, "{key}");
        }
        for key_and_version in [
            "0000 0000",
            "0000 0002",
            "0000 000e",
            "0001 0003",
            "0001 0013",
            "0002 0000",
            "0002 000c",
            "0003 ffff",
            "0003 000e",
            "000b 000a",
            "0013 0001",
            "0015 0003",
            "0016 0006",
            "0017 0001",
        ] {
            let error = parse_hex(&format!("{key_and_version} 00000026 0003 726177 00 00 00 00")).unwrap_err();
            assert_eq!(error.fault, HeaderFault::UnsupportedVersion, "{key_and_version}");
            assert_eq!(error.client_id.as_deref(), Some("raw"));
        }
    }

    #[test]
    fn any_version_of_api_versions_passes() {
        for version in ["0063", "0006", "7fff"] {
            let (header, _) = accepted(&format!("0012 {version} fffffff0 0003 726177 00 ff ff ff"));
            assert!(header.needs_version_fallback());
            assert_eq!(header.correlation_id, -16);
        }
        assert!(accepted("0012 ffff 0000001f 0003 726177").0.needs_version_fallback());
        assert!(accepted("0012 7fff 0000002b ffff 00").0.client_id.is_none());
    }
}
