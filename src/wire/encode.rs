//! Typed answers to bytes: length prefix, header, body, in one buffer. Answers with record bytes from disk have their own way out,
//! [`super::fetch_response`].

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

use super::header::write_response_header;
use super::messages::ResponseBody;
use super::table::Api;

/// Room for the common small answer, so that it is written without growing.
const ANSWER_BYTES_USUAL: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// Longer than a frame can say.
    TooLarge(usize),
    /// The version cannot carry a field of the answer; the encoder's sentence.
    Encoder(String),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::TooLarge(bytes) => write!(f, "answer of {bytes} bytes is longer than a frame can be"),
            EncodeError::Encoder(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for EncodeError {}

/// The whole answer frame, length prefix included.
pub fn encode_response<R: ResponseBody>(
    api: &Api,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Result<Bytes, EncodeError> {
    let mut buffer = BytesMut::with_capacity(ANSWER_BYTES_USUAL);
    append_response(&mut buffer, api, version, correlation_id, response)?;
    Ok(buffer.freeze())
}

/// The same behind what `buffer` already holds; after an error the buffer is as it was.
pub fn append_response<R: ResponseBody>(
    buffer: &mut BytesMut,
    api: &Api,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Result<(), EncodeError> {
    let start = buffer.len();
    buffer.put_i32(0);
    write_response_header(buffer, api, version, correlation_id);
    let written = response.write(version, buffer).map_err(EncodeError::Encoder);
    let finished = written.and_then(|()| write_length(buffer, start, 0));
    if finished.is_err() {
        buffer.truncate(start);
    }
    finished
}

/// Writes the length of the frame that begins at `start` and has `elsewhere_bytes` beyond what the buffer holds.
pub(super) fn write_length(buffer: &mut BytesMut, start: usize, elsewhere_bytes: usize) -> Result<(), EncodeError> {
    let length = (buffer.len() - start - 4).saturating_add(elsewhere_bytes);
    let declared = i32::try_from(length).map_err(|_| EncodeError::TooLarge(length))?;
    if let Some(prefix) = buffer.get_mut(start..start + 4) {
        prefix.copy_from_slice(&declared.to_be_bytes());
    }
    Ok(())
}
