//! The flush journal on a disk that loses what was not synced: what was committed comes back to its place, and nothing else happens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas::base::{Offset, TopicId};
use barnabas::host::Disk;
use barnabas::host::disk::OpenMode;
use barnabas::host::sim::{Crash, SimDisk};
use barnabas::log::write_topic_id;
use barnabas::replica::journal::{FILE_NAME, Journal, JournalRecovery, Place, discard, recover};

const TOPIC: TopicId = TopicId(uuid::Uuid::from_bytes([9; 16]));

struct World {
    disk: Arc<SimDisk>,
    dir: PathBuf,
}

impl World {
    /// A log directory with the durable, empty first segments of partitions `t-0` and `t-1`.
    fn new() -> World {
        let world = World { disk: Arc::new(SimDisk::new(1)), dir: PathBuf::from("/logs") };
        for partition in ["t-0", "t-1"] {
            let dir = world.dir.join(partition);
            world.disk.create_dir_all(&dir).unwrap();
            write_topic_id(&*world.disk, &dir, TOPIC).unwrap();
            world.disk.open(&world.segment(partition), OpenMode::CreateNew).unwrap().sync_data().unwrap();
            world.disk.sync_dir(&dir).unwrap();
        }
        world.disk.sync_dir(&world.dir).unwrap();
        world.disk.sync_dir(Path::new("/")).unwrap();
        world
    }

    fn segment(&self, partition: &str) -> PathBuf {
        self.dir.join(partition).join("00000000000000000000.log")
    }

    fn place(&self, partition: &str, position: u64) -> Place {
        Place { dir_name: partition.to_owned(), topic_id: TOPIC, segment_base: 0 as Offset, position }
    }

    /// Writes to the segment without syncing it, and collects the same bytes for the journal.
    fn append(&self, journal: &mut Journal, partition: &str, position: u64, content: &[u8]) {
        let file = self.disk.open(&self.segment(partition), OpenMode::ReadWrite).unwrap();
        file.write_all_at(content, position).unwrap();
        let place = self.place(partition, position);
        journal.collect(&place, content.len(), |room| file.read_exact_at(room, position)).unwrap();
    }

    fn recover(&self) -> JournalRecovery {
        recover(&*self.disk, &self.dir).unwrap()
    }

    fn content(&self, partition: &str) -> Vec<u8> {
        self.disk.content(&self.segment(partition)).unwrap()
    }
}

#[test]
fn what_was_committed_survives_a_power_cut() {
    let world = World::new();
    let mut journal = Journal::create(&*world.disk, &world.dir).unwrap();
    world.append(&mut journal, "t-0", 0, b"first");
    world.append(&mut journal, "t-1", 0, b"other");
    journal.commit().unwrap();
    world.append(&mut journal, "t-0", 5, b" second");
    journal.commit().unwrap();
    world.append(&mut journal, "t-0", 12, b" never committed");
    world.disk.crash(Crash::PowerLosesAll);
    assert_eq!(world.content("t-0"), b"", "the segments themselves were not synced");

    assert_eq!(world.recover(), JournalRecovery { entries: 3, skipped: 0, bytes: 17 });
    assert_eq!(world.content("t-0"), b"first second");
    assert_eq!(world.content("t-1"), b"other");
    world.disk.crash(Crash::PowerLosesAll);
    assert_eq!(world.content("t-0"), b"first second", "what recovery wrote is durable");
}

#[test]
fn recovering_twice_changes_nothing() {
    let world = World::new();
    let mut journal = Journal::create(&*world.disk, &world.dir).unwrap();
    world.append(&mut journal, "t-0", 0, b"first");
    journal.commit().unwrap();
    world.disk.crash(Crash::PowerLosesAll);
    let once = world.recover();
    assert_eq!(world.recover(), once);
    assert_eq!(world.content("t-0"), b"first");
}

#[test]
fn a_journal_that_began_again_replays_only_its_own_entries() {
    let world = World::new();
    let mut journal = Journal::create(&*world.disk, &world.dir).unwrap();
    world.append(&mut journal, "t-0", 0, b"a long piece of the first generation");
    journal.commit().unwrap();
    world.disk.open(&world.segment("t-0"), OpenMode::ReadWrite).unwrap().sync_data().unwrap();
    journal.begin_again().unwrap();
    world.append(&mut journal, "t-1", 0, b"new");
    journal.commit().unwrap();
    world.disk.crash(Crash::PowerLosesAll);
    assert_eq!(world.recover(), JournalRecovery { entries: 1, skipped: 0, bytes: 3 });
    assert_eq!(world.content("t-1"), b"new");
}

#[test]
fn entries_of_segments_that_are_gone_are_skipped() {
    let world = World::new();
    let mut journal = Journal::create(&*world.disk, &world.dir).unwrap();
    world.append(&mut journal, "t-0", 0, b"x");
    world.append(&mut journal, "t-1", 0, b"y");
    journal.commit().unwrap();
    world.disk.remove_file(&world.segment("t-0")).unwrap();
    world.disk.remove_dir_all(&world.dir.join("t-1")).unwrap();
    let again = world.dir.join("t-1");
    world.disk.create_dir_all(&again).unwrap();
    write_topic_id(&*world.disk, &again, TopicId(uuid::Uuid::from_bytes([8; 16]))).unwrap();
    assert_eq!(world.recover(), JournalRecovery { entries: 2, skipped: 2, bytes: 0 });
}

#[test]
fn a_torn_entry_ends_the_replay() {
    let world = World::new();
    let mut journal = Journal::create(&*world.disk, &world.dir).unwrap();
    world.append(&mut journal, "t-0", 0, b"whole");
    journal.commit().unwrap();
    world.append(&mut journal, "t-0", 5, b"torn");
    journal.commit().unwrap();
    let path = world.dir.join(FILE_NAME);
    world.disk.corrupt(&path, |bytes| bytes.truncate(bytes.len() - 1)).unwrap();
    assert_eq!(world.recover().entries, 1);
}

#[test]
fn damage_to_the_header_replays_nothing_and_a_new_journal_can_be_made() {
    let world = World::new();
    let mut journal = Journal::create(&*world.disk, &world.dir).unwrap();
    world.append(&mut journal, "t-0", 0, b"x");
    journal.commit().unwrap();
    world.disk.corrupt(&world.dir.join(FILE_NAME), |bytes| bytes[3] ^= 1).unwrap();
    assert_eq!(world.recover(), JournalRecovery::default());
    assert!(Journal::create(&*world.disk, &world.dir).is_ok());
}

#[test]
fn a_full_journal_says_so_before_it_is_written_to() {
    let world = World::new();
    let mut journal = Journal::with_capacity(&*world.disk, &world.dir, 200).unwrap();
    let place = world.place("t-0", 0);
    assert!(journal.has_room([(&place, 100)].into_iter()));
    assert!(!journal.has_room([(&place, 100), (&place, 100)].into_iter()));
    world.append(&mut journal, "t-0", 0, &[1; 100]);
    journal.commit().unwrap();
    assert!(!journal.has_room([(&place, 100)].into_iter()));
    journal.begin_again().unwrap();
    assert!(journal.has_room([(&place, 100)].into_iter()));
}

#[test]
fn a_discarded_journal_is_never_replayed_over_what_came_later() {
    let world = World::new();
    let mut journal = Journal::create(&*world.disk, &world.dir).unwrap();
    let fill = |room: &mut [u8]| {
        room.copy_from_slice(b"old");
        Ok(())
    };
    journal.collect(&world.place("t-0", 0), 3, fill).unwrap();
    journal.commit().unwrap();
    drop(journal);
    world.disk.crash(Crash::PowerLosesAll);
    assert_eq!(recover(&*world.disk, &world.dir).unwrap().entries, 1);
    discard(&*world.disk, &world.dir).unwrap();
    discard(&*world.disk, &world.dir).unwrap();
    let segment = world.disk.open(&world.segment("t-0"), OpenMode::ReadWrite).unwrap();
    segment.write_all_at(b"new", 0).unwrap();
    segment.sync_data().unwrap();
    world.disk.crash(Crash::PowerLosesAll);
    assert_eq!(recover(&*world.disk, &world.dir).unwrap(), JournalRecovery::default());
    assert_eq!(world.disk.content(&world.segment("t-0")).unwrap(), b"new");
}
