//! `partition.metadata`: which topic id a partition directory belongs to, so that a topic deleted and made again under the same
//! name never meets the old one's records (B9).

use std::io;
use std::path::Path;

use super::error::{Context, LogError};
use super::names::PARTITION_METADATA;
use crate::base::TopicId;
use crate::host::Disk;
use crate::host::disk::{read_file, write_file_atomically};

/// Characters of a damaged file that are shown.
const SHOWN_MAX: usize = 64;

/// The topic id of the directory; `None` without the file, and when that says nothing, as after a power cut or a damage of the device: whose
/// directory it is follows from its name then, as it does without the file.
pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<TopicId>, LogError> {
    let path = dir.join(PARTITION_METADATA);
    let content = match read_file(disk, &path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("read", &path),
    };
    let text = String::from_utf8_lossy(&content);
    let found = parse(&text);
    if found.is_none() {
        let shown: String = text.chars().take(SHOWN_MAX).collect();
        tracing::warn!(path = %path.display(), "no topic id in {shown:?}: the file counts as missing and is written again");
    }
    Ok(found)
}

fn parse(text: &str) -> Option<TopicId> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (key, version) = fields.next()?;
    if key.trim() != "version" || version.trim() != "0" {
        return None;
    }
    let (key, id) = fields.next()?;
    if key.trim() == "topic_id" { TopicId::parse_base64(id) } else { None }
}

pub fn write(disk: &dyn Disk, dir: &Path, id: TopicId) -> Result<(), LogError> {
    let path = dir.join(PARTITION_METADATA);
    write_file_atomically(disk, &path, format!("version: 0\ntopic_id: {id}").as_bytes()).context("write", &path)
}
