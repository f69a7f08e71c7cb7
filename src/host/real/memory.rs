//! How the system backs our memory.

/// Asks for pages of ordinary size only, where the system would use huge ones by itself (`transparent_hugepage/enabled` is `always`): a
/// broker that does little touches a corner of each, 2 MiB for a few kilobytes. What was touched before stays as it is, so this comes
/// first. A refusal costs memory and nothing else.
pub fn refuse_huge_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
