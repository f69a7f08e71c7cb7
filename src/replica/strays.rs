//! Directories that no topic of the image owns. They may hold somebody's records, so they are kept, under a name that nothing uses.

use std::io;
use std::path::{Path, PathBuf};

use crate::base::TopicId;
use crate::host::Host;
use crate::log::{read_topic_id, stray_dir_name};

/// Renames a partition's directory so that its name is free. Where it is now.
pub(super) fn set_aside(host: &Host, dir: &Path) -> io::Result<PathBuf> {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let owner = read_topic_id(&*host.disk, dir).ok().flatten();
    let by_owner = owner.map(|id| dir.with_file_name(stray_dir_name(&name, &id.to_string())));
    let aside = match by_owner {
        Some(path) if !host.disk.exists(&path) => path,
        _ => dir.with_file_name(stray_dir_name(&name, &TopicId(host.entropy.uuid()).to_string())),
    };
    host.disk.rename(dir, &aside)?;
    tracing::warn!(dir = %dir.display(), aside = %aside.display(), "no topic owns this partition directory; it was set aside");
    Ok(aside)
}
