//! Limits of the process that have to be raised before it is loaded.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes as many open files as the system lets this process have: connections and segments each need one.
pub fn raise_open_files_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::warn!(%error, "cannot raise the limit of open files; many connections may be refused");
    }
}
