//! Finds the `barnabas` binary under test: `BARNABAS_BINARY`, else the one that the running `cargo test` built beside this test,
//! built first when it is missing or older than the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The path of the binary; the first call may build it.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match std::env::var_os("BARNABAS_BINARY") {
        Some(path) => PathBuf::from(path),
        None => beside_this_test(),
    })
}

fn beside_this_test() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    // target/<profile>/deps/this-test
    let profile = test.ancestors().nth(2).expect("a profile directory above the test").to_path_buf();
    let binary = profile.join("barnabas");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace above compat-tests");
    let newest =
        [root.join("src"), root.join("Cargo.toml"), root.join("Cargo.lock")].iter().filter_map(|p| changed(p)).max();
    if changed(&binary).is_none_or(|built| newest.is_some_and(|source| source > built)) {
        build(root, &profile);
    }
    binary
}

/// When a file, or the newest file of a directory tree, was last changed.
fn changed(path: &Path) -> Option<SystemTime> {
    let about = fs::metadata(path).ok()?;
    if about.is_dir() {
        return fs::read_dir(path).ok()?.filter_map(|entry| changed(&entry.ok()?.path())).max();
    }
    about.modified().ok()
}

fn build(root: &Path, profile: &Path) {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(["build", "--quiet", "--workspace", "--bin", "barnabas", "--target-dir"]);
    command.arg(profile.parent().expect("a target directory above the profile"));
    if profile.ends_with("release") {
        command.arg("--release");
    }
    let status = command.status().expect("cargo starts");
    assert!(status.success(), "building the barnabas binary failed");
}
