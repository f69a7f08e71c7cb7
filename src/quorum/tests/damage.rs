use super::*;
use crate::host::sim::Crash;
use crate::records::{BatchBuilder, Codec};

/// Three topics, and a process that was killed.
async fn killed() -> Machine {
    let machine = Machine::new(1);
    let quorum = machine.open().unwrap();
    for number in 1..=3 {
        quorum.propose(vec![topic(number)]).await.unwrap();
    }
    machine.sim.disk.crash(Crash::PowerLosesAll);
    machine
}

/// The same after a clean stop.
async fn stopped() -> Machine {
    let machine = killed().await;
    machine.open().unwrap().close().await.unwrap();
    machine
}

fn refusal(machine: &Machine) -> String {
    match machine.open() {
        Ok(quorum) => panic!("opened with {:?}", names(&quorum.image())),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_torn_tail_is_cut_off() {
    let machine = killed().await;
    let whole = machine.sim.disk.content(&machine.log_file()).unwrap();
    let mut builder = BatchBuilder::new(Codec::None);
    builder.push(0, None, Some(&topic(4).to_json()), &[]);
    let next = builder.finish(3, 1);
    for tail in [&next[..1], &next[..30], &next[..next.len() - 1], &[0; 500]] {
        machine.sim.disk.corrupt(&machine.log_file(), |bytes| *bytes = [&whole, tail].concat()).unwrap();
        assert_eq!(names(&machine.open().unwrap().image()), ["topic-1", "topic-2", "topic-3"]);
        assert_eq!(machine.sim.disk.content(&machine.log_file()).unwrap(), whole);
    }
}

#[tokio::test]
async fn a_flipped_bit_before_the_last_batch_refuses_to_start() {
    let machine = killed().await;
    let whole = machine.sim.disk.content(&machine.log_file()).unwrap();
    let last = whole.len() - whole.len() / 3;
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
        match machine.open() {
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
    let text = refusal(&machine);
    assert!(text.contains("damaged") && text.contains("has reached offset 3"), "{text}");
}

#[tokio::test]
async fn a_log_that_lost_whole_batches_refuses_to_start() {
    let machine = stopped().await;
    machine.sim.disk.corrupt(&machine.log_file(), |bytes| bytes.truncate(bytes.len() / 3)).unwrap();
    refusal(&machine);
    machine.sim.disk.corrupt(&machine.log_file(), Vec::clear).unwrap();
    assert!(refusal(&machine).contains("Restore the directory"), "{}", refusal(&machine));
}

#[tokio::test]
async fn a_missing_log_refuses_to_start() {
    let machine = stopped().await;
    machine.sim.disk.remove_file(&machine.log_file()).unwrap();
    assert!(refusal(&machine).contains("there is no log file"), "{}", refusal(&machine));
}

#[tokio::test]
async fn a_node_that_had_metadata_does_not_start_with_none() {
    let machine = Machine::new(1);
    assert!(matches!(machine.open_as(true), Err(QuorumError::Incomplete { .. })));
    let machine = stopped().await;
    assert_eq!(machine.open_as(true).unwrap().image().topic_count(), 3);
}

#[tokio::test]
async fn records_of_a_newer_version_or_another_broker_refuse_to_start() {
    for (value, text) in [
        (br#"{"type":"from-the-future"}"#.as_slice(), "from-the-future"),
        (b"\x01\x02\x00binary".as_slice(), "another broker's directory"),
    ] {
        let machine = killed().await;
        let mut builder = BatchBuilder::new(Codec::None);
        builder.push(0, None, Some(value), &[]);
        let batch = builder.finish(3, 1);
        machine.sim.disk.corrupt(&machine.log_file(), |bytes| bytes.extend_from_slice(&batch)).unwrap();
        let refused = refusal(&machine);
        assert!(refused.contains(text) && refused.contains("offset 3"), "{refused}");
    }
}
