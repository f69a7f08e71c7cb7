//! Floor 9: the composition root. Puts the floors together into one running node, serves until it is told to stop, and takes it
//! apart in order.

mod assignments;
mod bring_up;
mod connection;
mod copies;
mod data_directory;
mod directories;
mod disks;
mod follow;
mod identity;
mod incarnations;
mod input;
mod knock;
mod lifecycle;
mod listener;
mod node;
mod offsets_log;
mod others;
mod output;
mod refusal;
mod roles;
mod shard;
mod transport;
mod tuning;
mod wiring;

use std::error::Error;

use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Loaded, LogFormatSetting};
use crate::host::Host;
use crate::telemetry::logs::{self, LogFormat};

pub use node::Node;

/// Threads for what may wait for a device, beside those that own connections.
const BLOCKING_THREADS_MAX: usize = 16;

/// Runs a node until SIGTERM, SIGINT or SIGHUP (its terminal is gone), then stops it cleanly.
pub fn run(loaded: Loaded) -> Result<(), Box<dyn Error>> {
    let format = match loaded.settings.log_format {
        LogFormatSetting::Text => LogFormat::Text,
        LogFormatSetting::Json => LogFormat::Json,
    };
    let log_control = logs::start(&loaded.settings.log_level, format)?;
    match &loaded.file {
        Some(file) => tracing::info!(version = env!("CARGO_PKG_VERSION"), settings = %file.display(), "starting"),
        None => tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting without a settings file"),
    }
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    tuning::raise_open_files_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut hangup = signal(SignalKind::hangup())?;
        let node = Node::start(Host::real(), loaded.settings, log_control).await.map_err(plain)?;
        let failed = tokio::select! {
            name = async {
                tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                    _ = hangup.recv() => "SIGHUP",
                }
            } => {
                tracing::info!("{name}: stopping");
                None
            }
            why = node.failed() => Some(why),
        };
        node.stop().await.map_err(plain)?;
        tracing::info!("stopped");
        match failed {
            Some(why) => Err(plain(why)),
            None => Ok(()),
        }
    })
}

fn plain(error: node::StartError) -> Box<dyn Error> {
    error
}

#[cfg(test)]
mod disk_tests;
#[cfg(test)]
mod tests;
