//! The process as the kernel sees it, under Prometheus' usual `process_*` names. Where there is no `/proc` (a simulated machine),
//! the metrics are absent rather than wrong.

use std::path::Path;

use crate::host::{Host, OpenMode};
use crate::telemetry::names;
use crate::telemetry::{Page, ScrapeSource};

/// The kernel's clock tick in user space, the same on every Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// Longer than any of the files read here.
const FILE_BYTES_MAX: usize = 16 * 1024;

/// Reads `/proc/self` at every scrape.
pub struct ProcessSource {
    host: Host,
}

impl ProcessSource {
    pub fn new(host: Host) -> ProcessSource {
        ProcessSource { host }
    }

    /// The file's text. Files in `/proc` say that they are empty, so their length is not asked.
    fn text(&self, name: &str) -> Option<String> {
        let file = self.host.disk.open(&Path::new("/proc/self").join(name), OpenMode::Read).ok()?;
        let mut bytes = vec![0; FILE_BYTES_MAX];
        let read = file.read_at(&mut bytes, 0).ok()?;
        bytes.truncate(read);
        String::from_utf8(bytes).ok()
    }
}

impl ScrapeSource for ProcessSource {
    fn scrape(&self, page: &mut Page) {
        let status = self.text("status").unwrap_or_default();
        let open_fds = self.host.disk.read_dir(Path::new("/proc/self/fd")).ok().map(|fds| fds.len() as f64);
        for (metric, value) in [
            (&names::PROCESS_CPU_SECONDS, self.text("stat").as_deref().and_then(cpu_seconds)),
            (&names::PROCESS_RESIDENT_MEMORY, status_field(&status, "VmRSS:").map(|kib| kib * 1024.0)),
            (&names::PROCESS_VIRTUAL_MEMORY, status_field(&status, "VmSize:").map(|kib| kib * 1024.0)),
            (&names::PROCESS_THREADS, status_field(&status, "Threads:")),
            (&names::PROCESS_OPEN_FDS, open_fds),
            (&names::PROCESS_MAX_FDS, self.text("limits").as_deref().and_then(max_fds)),
        ] {
            if let Some(value) = value {
                page.add(metric, &[], value);
            }
        }
    }
}

/// User and system time, fields 14 and 15. The second field is the program's name, which may hold spaces and parentheses.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

fn status_field(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The soft limit; absent when it is `unlimited`.
fn max_fds(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 4 0 100 200 300";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("7 (x"), None);
        assert_eq!(status_field("Name:\tx\nVmRSS:\t   2048 kB\nThreads:\t5\n", "VmRSS:"), Some(2048.0));
        assert_eq!(
            max_fds("Limit  Soft\nMax open files            1024                 524288               files\n"),
            Some(1024.0)
        );
        assert_eq!(max_fds("Max open files            unlimited            unlimited            files\n"), None);
    }

    #[test]
    fn this_process_has_all_of_them() {
        let mut page = Page::default();
        ProcessSource::new(Host::real()).scrape(&mut page);
        let text = page.finish();
        for metric in [&names::PROCESS_CPU_SECONDS, &names::PROCESS_RESIDENT_MEMORY, &names::PROCESS_OPEN_FDS] {
            assert!(text.contains(&format!("\n{} ", metric.name)), "{}", metric.name);
        }
    }
}
