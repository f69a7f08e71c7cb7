//! A stream of bytes from a stranger, in pieces of any size: frames, headers, shape check, decoders. No panic, and no memory beyond
//! what the bytes themselves can ask for (libFuzzer's limits watch both).
//!
//! The first byte chooses: raw bytes as they are, or a valid frame of the chosen API and version with the rest of the input as edits, so
//! that the fuzzer need not find the way past the header by itself.

#![no_main]

use barnabas::wire::decode::decode_and_drop;
use barnabas::wire::frame::{FrameLimit, next_frame};
use barnabas::wire::header;
use barnabas::wire::shape::sample::{self, Fill};
use barnabas::wire::table::APIS;
use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;

const LIMIT: FrameLimit = FrameLimit { bytes_max: 1 << 20, is_first: false };

fuzz_target!(|input: &[u8]| {
    let Some((&mode, rest)) = input.split_first() else { return };
    match mode % 4 {
        0 => stream(rest),
        1 => edited(rest, Fill::Minimal),
        _ => edited(rest, Fill::Full),
    }
});

/// The first byte says how large the pieces are; how the stream is cut must not change what comes out.
fn stream(input: &[u8]) {
    let Some((&piece_bytes, bytes)) = input.split_first() else { return };
    let whole = frames(bytes, bytes.len().max(1));
    assert_eq!(whole, frames(bytes, usize::from(piece_bytes).max(1)));
    whole.into_iter().for_each(answer);
}

fn frames(bytes: &[u8], piece_bytes: usize) -> Vec<Bytes> {
    let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
    for piece in bytes.chunks(piece_bytes) {
        buffer.extend_from_slice(piece);
        loop {
            match next_frame(&mut buffer, LIMIT) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return frames,
            }
        }
    }
    frames
}

/// API, version, then edits of three bytes: position (two bytes, modulo the length), value. What is left over goes behind the frame's end.
fn edited(input: &[u8], fill: Fill) {
    let [api, version, edits @ ..] = input else { return };
    let api = &APIS[usize::from(*api) % APIS.len()];
    let versions = api.version_max - api.version_min + 1;
    let version = api.version_min + i16::from(*version) % versions;
    let mut body = sample::body(api, version, fill);
    let (edits, tail) = edits.as_chunks::<3>();
    for [high, low, value] in edits {
        let position = usize::from(u16::from_be_bytes([*high, *low]));
        match body.len() {
            0 => body.push(*value),
            length => body[position % length] = *value,
        }
    }
    body.extend(tail);
    let _ = decode_and_drop(api.key, version, Bytes::from(body));
}

fn answer(frame: Bytes) {
    if let Ok((header, body)) = header::parse(frame) {
        if !header.needs_version_fallback() {
            let _ = decode_and_drop(header.api.key, header.version, body);
        }
    }
}
