//! The house's rules that the compiler does not know: floors import downwards only, pure floors stay pure, one folder speaks to
//! `kafka_protocol`, one to the machine, and no file swallows its neighbours. The table below is the one in `docs/ARCHITECTURE.md`.

#![expect(clippy::disallowed_methods, reason = "a test reads the repository's own files")]

mod architecture {
    mod settings_in_use;
    pub mod source;
}

use std::collections::BTreeSet;

use Kind::{Doors, Mixed, Pure, Sync, World};
use architecture::source::{self, SourceFile};

/// What the code of a floor may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// No suspension, no lock, no clock, no randomness, no I/O.
    Pure,
    /// Blocking-style code over the disk seam: no suspension.
    Sync,
    /// Pure but for files or folders called `driver`.
    Mixed,
    /// The Kafka APIs.
    Doors,
    /// Anything, through `host`.
    World,
}

/// Floor, folder, kind. A folder imports from lower floors only.
const FLOORS: &[(u8, &str, Kind)] = &[
    (0, "base", Pure),
    (1, "host", World),
    (1, "records", Pure),
    (1, "telemetry", World),
    (2, "wire", Pure),
    (2, "metadata", Pure),
    (3, "security", Pure),
    (3, "log", Sync),
    (4, "peer", World),
    // Mixed once the leader and follower machine is there; with one broker all of it is driver.
    (5, "replica", World),
    (5, "quorum", World),
    (6, "controller", Mixed),
    (6, "coordinator", Mixed),
    (7, "api", Doors),
    (8, "config", World),
    (8, "admin", World),
    (9, "server", World),
    (10, "cli", World),
    (10, "sim", World),
];

/// Files over the bound, with the reason why one file is better.
const LONG_FILES: &[(&str, &str)] = &[];

const FILE_LINES_MAX: usize = 700;

/// Files up to this length explain themselves.
const HEADLESS_LINES_MAX: usize = 10;

/// Pure files that name `host`: what they name and why it does no harm.
const PURE_FILES_NAMING_HOST: &[(&str, &str)] =
    &[("wire/response.rs", "an answer carries an open file to the socket; wire never reads it")];

/// What reaches the machine; only `host` may say it.
const MACHINE: &[&str] = &[
    "std::fs",
    "TcpStream::connect",
    "UdpSocket",
    "std::time::Instant",
    "std::time::SystemTime",
    "Instant::now",
    "SystemTime::now",
    "std::thread::sleep",
    "tokio::fs",
    "tokio::net",
    "tokio::time",
    "tokio::task::spawn_blocking",
    "thread_rng",
    "rand::random",
    "getrandom",
];

/// Where -1 is answered, how often, the file that says so in the log, and why there is no better code: clients do not retry it, and
/// programs die of it. Leadership, loading and disks all have codes of their own (trap 19).
const UNKNOWN_SERVER_ERRORS: &[(&str, usize, &str, &str)] = &[
    ("api/brokers/allocate_producer_ids.rs", 1, "api/brokers/allocate_producer_ids.rs", "all producer ids are used up"),
    ("coordinator/group/driver/requests.rs", 1, "coordinator/group/driver/requests.rs", "a reply that cannot be"),
    (
        "coordinator/group/driver/shard.rs",
        1,
        "coordinator/group/driver/shard.rs",
        "a group's records are larger than a batch may be: asking again would not help (Kafka's code)",
    ),
    ("records/error.rs", 1, "api/data/produce.rs", "a codec's library fails to compress"),
];

const SUSPENSION: &[&str] = &["async", "await", "tokio"];
const LOCKS: &[&str] = &["Mutex", "RwLock", "Condvar", "parking_lot"];

fn floor_of(folder: &str) -> Option<(u8, Kind)> {
    FLOORS.iter().find(|(_, name, _)| *name == folder).map(|(floor, _, kind)| (*floor, *kind))
}

/// Folders that `file` imports though they are not below it.
fn climbing_imports(file: &SourceFile) -> Vec<String> {
    let Some((own_floor, _)) = floor_of(file.folder()) else {
        return Vec::new();
    };
    let climbs = |folder: &&String| {
        let is_below = floor_of(folder).is_some_and(|(floor, _)| floor < own_floor);
        *folder != file.folder() && !is_below
    };
    file.imported_folders().iter().filter(climbs).cloned().collect()
}

/// What a file of a pure or half-pure floor says and must not.
fn impurities(file: &SourceFile) -> Vec<&'static str> {
    let Some((_, kind)) = floor_of(file.folder()) else {
        return Vec::new();
    };
    let is_driver = file.path.split('/').any(|part| part == "driver" || part == "driver.rs");
    let may_name_host = PURE_FILES_NAMING_HOST.iter().any(|(path, _)| *path == file.path);
    let banned: Vec<&'static str> = match kind {
        Pure if may_name_host => [SUSPENSION, LOCKS].concat(),
        Pure => [SUSPENSION, LOCKS, &["crate::host"]].concat(),
        Mixed if !is_driver => [SUSPENSION, LOCKS, &["crate::host"]].concat(),
        Sync => SUSPENSION.to_vec(),
        _ => Vec::new(),
    };
    banned.into_iter().filter(|word| file.says_outside_tests(word)).collect()
}

fn assert_none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn every_folder_has_a_floor() {
    let known: BTreeSet<&str> = FLOORS.iter().map(|(_, folder, _)| *folder).collect();
    let files = source::all();
    let lost = files.iter().map(SourceFile::folder).filter(|folder| !folder.is_empty() && !known.contains(folder));
    let lost: BTreeSet<String> = lost.map(str::to_owned).collect();
    assert_none("folders without a floor in tests/architecture.rs", lost.into_iter().collect());
}

#[test]
fn imports_go_downwards() {
    let mut found = Vec::new();
    for file in source::all() {
        found.extend(climbing_imports(&file).iter().map(|folder| format!("{} imports {folder}", file.path)));
        found.extend(file.climbs_to_the_root().map(|line| format!("{}: write `crate::` for `{line}`", file.path)));
    }
    assert_none("imports that climb", found);
}

#[test]
fn pure_floors_are_pure() {
    let files = source::all();
    let found =
        files.iter().flat_map(|file| impurities(file).into_iter().map(|word| format!("{} says `{word}`", file.path)));
    assert_none("what only drivers and world floors may say", found.collect());
}

#[test]
fn only_wire_speaks_kafka_protocol() {
    let files = source::all();
    let found = files.iter().filter(|file| file.folder() != "wire" && file.says("kafka_protocol"));
    assert_none("use crate::wire::messages instead", found.map(|file| file.path.clone()).collect());
}

#[test]
fn only_host_reaches_the_machine() {
    let mut found = Vec::new();
    for file in source::all().iter().filter(|file| file.folder() != "host") {
        let said = MACHINE.iter().filter(|word| file.says_outside_tests(word));
        found.extend(said.map(|word| format!("{} says `{word}`", file.path)));
    }
    assert_none("reach the machine through crate::host", found);
}

#[test]
fn minus_one_is_answered_only_where_nothing_better_fits() {
    let files = source::all();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path != "base/error_code.rs") {
        let excused = UNKNOWN_SERVER_ERRORS.iter().find(|(path, ..)| *path == file.path).map_or(0, |row| row.1);
        let said = file.count_outside_tests("UNKNOWN_SERVER_ERROR");
        if said != excused {
            found.push(format!("{} says UNKNOWN_SERVER_ERROR {said} times, not {excused}", file.path));
        }
        if ["error_code(-1", "ErrorCode(-1"].iter().any(|number| file.count_outside_tests(number) > 0) {
            found.push(format!("{} writes -1 as a number", file.path));
        }
    }
    for (_, _, logger, why) in UNKNOWN_SERVER_ERRORS {
        if !files.iter().any(|file| file.path == *logger && file.says_outside_tests("tracing::error")) {
            found.push(format!("{logger} does not log: {why}"));
        }
    }
    assert_none("answer a code that tells the client what to do, or give the reason in UNKNOWN_SERVER_ERRORS", found);
}

#[test]
fn no_file_swallows_its_neighbours() {
    let mut found = Vec::new();
    for file in source::all() {
        let excused = LONG_FILES.iter().any(|(path, _)| *path == file.path);
        match (file.lines > FILE_LINES_MAX, excused) {
            (true, false) => found.push(format!("{} has {} lines", file.path, file.lines)),
            (false, true) => found.push(format!("{} is short again: take it off the list", file.path)),
            _ => {}
        }
    }
    assert_none("split these, or say in LONG_FILES why not", found);
}

#[test]
fn every_file_says_what_it_is_for() {
    let files = source::all();
    let found = files.iter().filter(|file| !file.has_head() && !file.is_test() && file.lines > HEADLESS_LINES_MAX);
    assert_none("files without a `//!` head", found.map(|file| file.path.clone()).collect());
}

#[test]
fn the_map_shows_the_same_floors() {
    let map = source::read("docs/ARCHITECTURE.md");
    let missing = FLOORS.iter().filter(|(floor, folder, _)| !map.contains(&format!("| {floor} | `{folder}` |")));
    assert_none(
        "not in docs/ARCHITECTURE.md",
        missing.map(|(floor, folder, _)| format!("| {floor} | `{folder}` |")).collect(),
    );
}

#[test]
fn every_dependency_has_its_reason() {
    let manifest = source::read("Cargo.toml");
    let reasons = source::read("docs/decisions/0001-house.md");
    let mut section = "";
    let mut missing = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if let ("[dependencies]" | "[dev-dependencies]", Some((name, _))) = (section, line.split_once(" = ")) {
            let is_named =
                reasons.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').any(|word| word == name);
            missing.extend((!is_named).then(|| name.to_owned()));
        }
    }
    assert_none("without a line in docs/decisions/0001-house.md", missing);
}

mod the_guard_itself {
    use super::*;

    fn file(path: &str, code: &str) -> SourceFile {
        SourceFile::new(path, code)
    }

    #[test]
    fn finds_imports_that_climb_or_go_sideways() {
        for code in ["use crate::api::Broker;", "fn f() { crate::api::g() }", "use crate::{base::Offset, api::{x, y}};"]
        {
            assert_eq!(climbing_imports(&file("log/segment.rs", code)), ["api"], "{code}");
        }
        assert_eq!(climbing_imports(&file("wire/frame.rs", "use crate::metadata::Image;")), ["metadata"]);
        assert_eq!(climbing_imports(&file("wire/frame.rs", "use crate::{\n  base::{a, b},\n  wire::c,\n};")), [""; 0]);
    }

    #[test]
    fn does_not_read_comments_and_strings() {
        let code = "// crate::api\n/* crate::api /* nested */ crate::api */\n//! [`crate::api`]\nconst A: &str = \"crate::api\";\n\
            const B: &str = r#\"\"crate::api\"#; const C: char = '\"'; use crate::base::x; // crate::api";
        assert_eq!(climbing_imports(&file("log/a.rs", code)), [""; 0]);
    }

    #[test]
    fn finds_words_and_not_parts_of_words() {
        assert_eq!(impurities(&file("records/a.rs", "async fn f() {}")), ["async"]);
        assert_eq!(impurities(&file("records/a.rs", "fn asynchronous() {}")), [""; 0]);
        assert_eq!(impurities(&file("coordinator/group/machine.rs", "use crate::host::Host;")), ["crate::host"]);
        assert_eq!(impurities(&file("coordinator/group/driver.rs", "use crate::host::Host;")), [""; 0]);
        assert_eq!(impurities(&file("controller/driver/turn.rs", "async fn f() {}")), [""; 0]);
        let only_in_tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n    use parking_lot::Mutex;\n}";
        assert_eq!(impurities(&file("records/a.rs", only_in_tests)), [""; 0]);
    }

    #[test]
    fn finds_a_way_round_through_super() {
        let reaches = |path, code| file(path, code).climbs_to_the_root().count();
        assert_eq!(reaches("log/mod.rs", "use super::api;"), 1);
        assert_eq!(reaches("log/segment.rs", "use super::super::api;"), 1);
        assert_eq!(reaches("log/segment.rs", "use super::index;"), 0);
        assert_eq!(reaches("log/mod.rs", "mod tests {\n    use super::*;\n}"), 0);
    }
}
