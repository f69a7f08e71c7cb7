//! The same on this machine: real files, and sled as the store.

use super::super::store::{load_image, path};
use super::*;
use crate::host::real::SledStore;
use crate::host::{Disk, DiskFile, Host, OpenMode};

fn sled() -> StoreOpener {
    Arc::new(|path| Ok(Arc::new(SledStore::open(path)?) as Arc<dyn KeyValueStore>))
}

async fn open(dir: &Path) -> Quorum {
    Quorum::open(&Host::real(), dir, alone(sled())).await.unwrap()
}

#[tokio::test]
async fn sled_holds_the_image_and_may_be_damaged_or_gone() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join(DIRECTORY);
    let quorum = open(temp.path()).await;
    // Enough for the next start to look into the store.
    for number in 0..25 {
        quorum.propose(vec![topic(number), bulky(0, 100 * 1024)]).await.unwrap();
    }
    quorum.close().await.unwrap();
    let image = quorum.image();
    drop(quorum);
    let held = load_image(&dir, &sled()).expect("sled has the image");
    assert_eq!((held.image.offset, held.image.topic_count()), (image.offset, image.topic_count()));

    let disk = Host::real().disk;
    for damage in [overwrite_all, remove_all] {
        damage(disk.as_ref(), &path(&dir));
        let quorum = open(temp.path()).await;
        assert_eq!(*quorum.image(), *image);
        quorum.close().await.unwrap();
        drop(quorum);
        assert_eq!(load_image(&dir, &sled()).map(|held| held.image.offset), Some(image.offset), "made again");
    }
}

fn overwrite_all(disk: &dyn Disk, dir: &Path) {
    for entry in disk.read_dir(dir).unwrap().into_iter().filter(|entry| !entry.is_dir) {
        let file: Arc<dyn DiskFile> = disk.open(&dir.join(&entry.name), OpenMode::ReadWrite).unwrap();
        let junk: Vec<u8> = (0..entry.len).map(|at| u8::try_from(at * 37 % 251).unwrap_or(0)).collect();
        file.write_all_at(&junk, 0).unwrap();
    }
}

fn remove_all(disk: &dyn Disk, dir: &Path) {
    disk.remove_dir_all(dir).unwrap();
}
