use super::*;
use crate::host::sim::Crash;
use crate::records::{BatchBuilder, Codec};

/// The index behind three topics: the members and the beginning of the term stand before them.
const END: i64 = 5;

/// An entry as a newer version or another program might have written it.
fn batch(index: i64, term: u64, value: &str) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Codec::None);
    let key = (u128::from(term) << 64 | u128::from(index.unsigned_abs())).to_be_bytes();
    builder.push(0, Some(&key), Some(value.as_bytes()), &[]);
    builder.finish(index, 1)
}

/// Three topics, and a process that was killed.
async fn killed() -> Machine {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    for number in 1..=3 {
        quorum.propose(vec![topic(number)]).await.unwrap();
    }
    machine.sim.disk.crash(Crash::PowerLosesAll);
    machine
}

/// The same after a clean stop.
async fn stopped() -> Machine {
    let machine = killed().await;
    machine.open().await.unwrap().close().await.unwrap();
    machine
}

async fn refusal(machine: &Machine) -> String {
    match machine.open().await {
        Ok(quorum) => panic!("opened with {:?}", names(&quorum.image())),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_torn_tail_is_cut_off() {
    let machine = killed().await;
    let whole = machine.sim.disk.content(&machine.log_file()).unwrap();
    let next = batch(END, 1, r#"{"agreed":0}"#);
    for tail in [&next[..1], &next[..30], &next[..next.len() - 1], &[0; 500]] {
        machine.sim.disk.corrupt(&machine.log_file(), |bytes| *bytes = [&whole, tail].concat()).unwrap();
        assert_eq!(names(&machine.open().await.unwrap().image()), ["topic-1", "topic-2", "topic-3"]);
        // The next term begins where the tail was.
        let mut after = machine.sim.disk.content(&machine.log_file()).unwrap();
        assert!(after.len() > whole.len());
        after.truncate(whole.len());
        assert_eq!(after, whole);
    }
}

#[tokio::test]
async fn a_flipped_bit_before_the_last_batch_refuses_to_start() {
    let machine = killed().await;
    let whole = machine.sim.disk.content(&machine.log_file()).unwrap();
    let last = whole.len() - whole.len() / 4;
    for at in (0..last).step_by(7) {
        machine
            .sim
            .disk
            .corrupt(&machine.log_file(), |bytes| {
                bytes.clone_from(&whole);
                // Bytes 12 to 15 of a batch, the leader epoch, are outside its checksum.
                bytes[at] ^= 0x40;
            })
            .unwrap();
        match machine.open().await {
            Ok(quorum) => assert_eq!(names(&quorum.image()), ["topic-1", "topic-2", "topic-3"], "byte {at}"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("00000000000000000000.log") && text.contains("Restore this file"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn after_a_clean_stop_the_last_batch_cannot_be_torn_either() {
    let machine = stopped().await;
    machine.sim.disk.corrupt(&machine.log_file(), |bytes| bytes.truncate(bytes.len() - 1)).unwrap();
    let text = refusal(&machine).await;
    assert!(text.contains("damaged") && text.contains("has reached offset 6"), "{text}");
}

#[tokio::test]
async fn a_log_that_lost_whole_batches_refuses_to_start() {
    let machine = stopped().await;
    machine.sim.disk.corrupt(&machine.log_file(), |bytes| bytes.truncate(bytes.len() / 3)).unwrap();
    refusal(&machine).await;
    machine.sim.disk.corrupt(&machine.log_file(), Vec::clear).unwrap();
    assert!(refusal(&machine).await.contains("Restore the directory"), "{}", refusal(&machine).await);
}

#[tokio::test]
async fn a_missing_log_refuses_to_start() {
    let machine = stopped().await;
    machine.sim.disk.remove_file(&machine.log_file()).unwrap();
    assert!(refusal(&machine).await.contains("there is no log file"), "{}", refusal(&machine).await);
}

#[tokio::test]
async fn a_node_that_had_metadata_does_not_start_with_none() {
    let machine = Machine::new(1);
    assert!(matches!(machine.open_as(true).await, Err(QuorumError::Incomplete { .. })));
    let machine = stopped().await;
    assert_eq!(machine.open_as(true).await.unwrap().image().topic_count(), 3);
}

#[tokio::test]
async fn records_of_a_newer_version_or_another_broker_refuse_to_start() {
    let mut without_key = BatchBuilder::new(Codec::None);
    without_key.push(0, None, Some(b"\x01\x02\x00binary"), &[]);
    for (batch, text) in [
        (batch(END, 1, r#"{"agreed":0,"changes":[{"records":[{"type":"from-the-future"}]}]}"#), "from-the-future"),
        (batch(END, 1, r#"{"agreed":0,"kind-of-the-future":1}"#), "kind-of-the-future"),
        (without_key.finish(END, 1), "another broker's directory"),
    ] {
        let machine = killed().await;
        machine.sim.disk.corrupt(&machine.log_file(), |bytes| bytes.extend_from_slice(&batch)).unwrap();
        let refused = refusal(&machine).await;
        assert!(refused.contains(text) && refused.contains("index 5"), "{refused}");
    }
}

#[tokio::test]
async fn a_damaged_promise_refuses_to_start() {
    let machine = stopped().await;
    machine.sim.disk.corrupt(&file("quorum-state"), |bytes| bytes[10] ^= 1).unwrap();
    let text = refusal(&machine).await;
    assert!(text.contains("quorum-state") && text.contains("checksum"), "{text}");
}
