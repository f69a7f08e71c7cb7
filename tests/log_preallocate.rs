//! `preallocate`: a new segment takes its room on the device at once, its file does not get longer, and what it did not need is
//! given back.

mod log_support;

use barnabas::host::Disk;
use barnabas::host::disk::OpenMode;
use barnabas::host::real::RealDisk;
use barnabas::host::sim::Crash;
use log_support::*;

fn bench() -> Bench {
    let mut bench = Bench::new(1);
    bench.config.preallocate = true;
    bench
}

/// Room that is taken and holds nothing.
fn reserved_bytes(bench: &Bench) -> u64 {
    let files = bench.sim.disk.read_dir(&bench.dir()).unwrap();
    bench.sim.disk.used_bytes() - files.iter().map(|file| file.len).sum::<u64>()
}

#[test]
fn a_segment_has_its_room_from_the_start_and_gives_the_rest_back_when_it_ends() {
    let bench = bench();
    let mut log = bench.open();
    assert_eq!(reserved_bytes(&bench), 4096);
    fill(&mut log, 2);
    assert_eq!(reserved_bytes(&bench), 4096 - log.size_bytes());
    while log.segment_count() == 1 {
        fill(&mut log, 1);
    }
    let view = log.view();
    let last = view.segments.last().unwrap().bytes();
    assert_eq!(reserved_bytes(&bench), 4096 - last, "the full one keeps nothing");
    assert_eq!(values(&log), filled(0..log.log_end_offset()));
    log.close().unwrap();
    assert_eq!(reserved_bytes(&bench), 0);
}

#[test]
fn a_crash_leaves_no_zeros_to_recover_from() {
    for how in [Crash::Process, Crash::PowerLosesAll] {
        let mut bench = bench();
        let mut log = bench.open();
        fill(&mut log, 5);
        log.flush().unwrap();
        drop(log);
        bench.crash(how);
        let (mut log, recovery) = bench.open_from(0);
        assert_eq!((recovery.truncated_bytes, log.log_end_offset()), (0, 5), "{how:?}");
        while log.segment_count() == 1 {
            fill(&mut log, 1);
        }
        log.close().unwrap();
        assert_eq!(reserved_bytes(&bench), 0, "{how:?}: nothing stays taken because of the crash");
    }
}

#[test]
fn a_disk_without_so_much_room_is_left_to_others() {
    let bench = bench();
    bench.sim.disk.set_capacity_bytes(3000);
    let mut log = bench.open();
    assert_eq!(reserved_bytes(&bench), 0);
    fill(&mut log, 3);
    assert_eq!(values(&log), filled(0..3));
}

#[test]
fn the_machines_own_disk_keeps_the_length_and_takes_the_room() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("segment");
    let file = RealDisk::new().open(&path, OpenMode::CreateNew).unwrap();
    if file.reserve(1 << 20).is_err() {
        return; // This file system cannot, which is what the log expects of some.
    }
    let blocks = || std::fs::metadata(&path).unwrap().blocks();
    file.write_all_at(b"x", 0).unwrap();
    assert_eq!(file.len().unwrap(), 1);
    assert!(blocks() >= 2048, "{} blocks of 512 bytes", blocks());
    file.set_len(1).unwrap();
    assert_eq!(file.len().unwrap(), 1);
    assert!(blocks() < 2048, "{} blocks of 512 bytes", blocks());
}
