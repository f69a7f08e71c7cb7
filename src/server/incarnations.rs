//! Which lives of this broker its log directories remember, so that a directory that was put back to an older copy is found out: the
//! controller knows which life it registered last, and an older copy does not.
//!
//! In `incarnations`, a line each: the life that was registered last, then those that were begun since. A life is written down, durably,
//! before it is registered. A broker whose directories remember nothing (new ones, or of a version that wrote nothing down) claims nothing,
//! and neither does one that is alone, whose metadata would be set back with everything else.

use std::io;
use std::path::Path;

use uuid::Uuid;

use super::directories::Directories;
use crate::host::Host;
use crate::host::disk::{read_file, write_file_atomically};

const FILE_NAME: &str = "incarnations";

/// Lives that are remembered since the last that was registered. A broker that is started more often than that without reaching a controller forgets
/// the ones between.
const BEGUN_MAX: usize = 62;

/// Lives that the directories remember, this one not among them. Writes this one down where others are.
pub fn begin(host: &Host, directories: &Directories, incarnation: Uuid) -> io::Result<Vec<Uuid>> {
    let mut remembered = Vec::new();
    for dir in &directories.logs {
        let before = read(host, &dir.path)?;
        if before.is_empty() {
            continue;
        }
        let mut lives = before.clone();
        let too_many = lives.len().saturating_sub(1 + BEGUN_MAX);
        lives.drain(1..=too_many);
        lives.push(incarnation);
        write(host, &dir.path, &lives)?;
        remembered.extend(before);
    }
    remembered.sort_unstable();
    remembered.dedup();
    Ok(remembered)
}

/// This life was registered in a cluster of several: those before it cannot be what the controller knows any more.
pub fn registered(host: &Host, directories: &Directories, incarnation: Uuid) -> io::Result<()> {
    directories.logs.iter().try_for_each(|dir| write(host, &dir.path, &[incarnation]))
}

fn read(host: &Host, dir: &Path) -> io::Result<Vec<Uuid>> {
    match read_file(&*host.disk, &dir.join(FILE_NAME)) {
        // What cannot be read as a life was none.
        Ok(content) => {
            Ok(String::from_utf8_lossy(&content).lines().filter_map(|line| line.trim().parse().ok()).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn write(host: &Host, dir: &Path, lives: &[Uuid]) -> io::Result<()> {
    let text: String = lives.iter().map(|life| format!("{life}\n")).collect();
    write_file_atomically(&*host.disk, &dir.join(FILE_NAME), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Disk;
    use crate::host::sim::{Crash, SimHost};
    use crate::server::directories::Directory;
    use crate::server::identity::Identity;

    fn life(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn one(sim: &SimHost) -> Directories {
        let path = Path::new("/data").to_owned();
        sim.disk.create_dir_all(&path).expect("an empty disk");
        sim.disk.sync_dir(Path::new("/")).expect("an empty disk");
        let identity = Identity { cluster_id: "c".into(), directory_id: life(1000), is_known: true };
        let dir = Directory { path, identity };
        Directories { metadata: dir.clone(), logs: vec![dir], missing: Vec::new() }
    }

    #[test]
    fn a_life_is_remembered_from_before_its_registration_on_and_over_a_power_cut() {
        let sim = SimHost::new(1);
        let (host, dirs) = (sim.host(), one(&sim));
        assert_eq!(begin(&host, &dirs, life(1)).unwrap(), Vec::<Uuid>::new());
        registered(&host, &dirs, life(1)).unwrap();
        assert_eq!(begin(&host, &dirs, life(2)).unwrap(), [life(1)]);
        sim.disk.crash(Crash::PowerLosesAll);
        let host = sim.host();
        assert_eq!(begin(&host, &dirs, life(3)).unwrap(), [life(1), life(2)], "2 may have been registered");
        registered(&host, &dirs, life(3)).unwrap();
        assert_eq!(begin(&host, &dirs, life(4)).unwrap(), [life(3)]);
    }

    #[test]
    fn the_last_registered_life_is_remembered_however_often_the_broker_is_started_in_vain() {
        let sim = SimHost::new(2);
        let (host, dirs) = (sim.host(), one(&sim));
        registered(&host, &dirs, life(1)).unwrap();
        for number in 2..=300 {
            begin(&host, &dirs, life(number)).unwrap();
        }
        let remembered = begin(&host, &dirs, life(301)).unwrap();
        assert!(remembered.contains(&life(1)) && remembered.contains(&life(300)), "{remembered:?}");
        assert_eq!(remembered.len(), 64);
    }
}
