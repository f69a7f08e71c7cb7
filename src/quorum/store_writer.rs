//! Keeps the store near the newest image, in the background and never in anybody's way: at most one write a second, each with all
//! that changed since the one before. While a start could do without the store, it is written at the clean stop only.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::machine::{Applied, Published};
use super::store::{self, StoreOpener, WORTH_BYTES};
use crate::host::{Host, KeyValueStore, task};
use crate::metadata::Image;

/// Time between two writes, and before the first: a start has better things to do.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct StoreWriter {
    pub(super) host: Host,
    pub(super) dir: PathBuf,
    pub(super) opener: StoreOpener,
    pub(super) images: watch::Receiver<Arc<Image>>,
    pub(super) published: Arc<Published>,
}

/// An open store and the image it holds.
struct Held {
    store: Arc<dyn KeyValueStore>,
    applied: Applied,
}

impl StoreWriter {
    /// Runs until `stop` is sent or dropped, then writes once more.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut held = None;
        let mut stopping = false;
        while !stopping {
            stopping = tokio::select! {
                biased;
                _ = &mut stop => true,
                () = task::sleep(PAUSE) => false,
            };
            if !stopping {
                stopping = tokio::select! {
                    biased;
                    _ = &mut stop => true,
                    changed = self.images.changed() => changed.is_err(),
                };
            }
            self.images.mark_unchanged();
            let applied = self.published.applied();
            if !stopping && self.published.bytes.load(Ordering::Relaxed) < WORTH_BYTES {
                continue;
            }
            held = self.bring_up(held, applied).await;
        }
    }

    async fn bring_up(&self, held: Option<Held>, applied: Applied) -> Option<Held> {
        let (host, dir, opener) = (self.host.clone(), self.dir.clone(), self.opener.clone());
        task::blocking(move || {
            let written = store::guarded(|| match held {
                Some(held) => write(held.store, Some(&held.applied), applied.clone()),
                None => open_and_write(&dir, &opener, applied.clone()),
            });
            if let Err(error) = &written {
                tracing::warn!(%error, "the metadata image store is made again");
            }
            // A second failure in a row waits for the next change.
            written.or_else(|_| store::guarded(|| rebuild(&host, &dir, &opener, applied))).ok()
        })
        .await
    }
}

fn open_and_write(dir: &std::path::Path, opener: &StoreOpener, applied: Applied) -> std::io::Result<Held> {
    let store = store::open(dir, opener)?;
    match store::read_image(store.as_ref())? {
        Some(held) if held.log_id == applied.log_id => Ok(Held { store, applied: held }),
        Some(held) if held.log_id < applied.log_id => write(store, Some(&held), applied),
        _ => write(store, None, applied),
    }
}

fn rebuild(host: &Host, dir: &std::path::Path, opener: &StoreOpener, applied: Applied) -> std::io::Result<Held> {
    let path = store::path(dir);
    if host.disk.exists(&path) {
        host.disk.remove_dir_all(&path)?;
    }
    write(store::open(dir, opener)?, None, applied)
}

fn write(store: Arc<dyn KeyValueStore>, old: Option<&Applied>, applied: Applied) -> std::io::Result<Held> {
    store.apply(store::edits(old.map(|old| &*old.image), &applied))?;
    store.flush()?;
    Ok(Held { store, applied })
}
