//! Limits of the process that have to be raised before it is loaded, and what they leave for whom.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::base::limits::OPEN_FILES_MAX;

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

/// How the descriptors of this process are shared out, so that connections never take those that the logs need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorShares {
    /// Segments and indexes kept open.
    pub files_max: usize,
    pub connections_max: usize,
}

/// For everything else: listeners, connections to other nodes, the HTTP server, metadata, checkpoints, files in use beyond the cache's
/// bound.
const RESERVE: u64 = 512;

impl DescriptorShares {
    pub fn of_this_process() -> DescriptorShares {
        DescriptorShares::of(getrlimit(Resource::Nofile).current)
    }

    /// A quarter of them at most is for files; `None` is no limit.
    fn of(limit: Option<u64>) -> DescriptorShares {
        let Some(limit) = limit else {
            return DescriptorShares { files_max: OPEN_FILES_MAX, connections_max: usize::MAX };
        };
        let files_max = usize::try_from(limit / 4).unwrap_or(usize::MAX).clamp(1, OPEN_FILES_MAX);
        let left = limit.saturating_sub(RESERVE.min(limit / 4)).saturating_sub(files_max as u64);
        DescriptorShares { files_max, connections_max: usize::try_from(left).unwrap_or(usize::MAX).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_get_what_files_and_the_rest_leave() {
        let shares = |limit| {
            let shares = DescriptorShares::of(limit);
            (shares.files_max, shares.connections_max)
        };
        assert_eq!(shares(Some(256)), (64, 128));
        assert_eq!(shares(Some(2048)), (512, 1024));
        assert_eq!(shares(Some(20_000)), (4096, 15_392));
        assert_eq!(shares(Some(1_048_576)), (4096, 1_043_968));
        assert_eq!(shares(None), (4096, usize::MAX));
    }
}
