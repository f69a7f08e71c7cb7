use super::*;
use crate::host::sim::Crash;

const HOW: [fn() -> Crash; 3] = [|| Crash::Process, || Crash::PowerLosesAll, || Crash::PowerLosesSome];

/// Opens, proposes `topic-1..=5` one by one, closes; answers how many were acknowledged before the power went.
async fn run(machine: &Machine) -> usize {
    let Ok(quorum) = machine.open().await else { return 0 };
    let mut acknowledged = 0;
    for number in 1..=5 {
        if quorum.propose(vec![topic(number)]).await.is_ok() {
            acknowledged += 1;
        }
    }
    let _ = quorum.close().await;
    acknowledged
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_crash_at_every_write() {
    let whole = {
        let machine = Machine::new(0);
        run(&machine).await;
        machine.sim.disk.write_count()
    };
    for (which, how) in HOW.iter().enumerate() {
        for count in 1..=whole {
            let machine = Machine::new(count * 10 + which as u64);
            machine.sim.disk.cut_power_at(count);
            let acknowledged = run(&machine).await;
            machine.sim.disk.crash(how());
            let quorum = machine.open().await.unwrap_or_else(|error| panic!("write {count}, crash {which}: {error}"));
            let found = quorum.image().topic_count();
            assert!(
                found == acknowledged || found == acknowledged + 1,
                "write {count}, crash {which}: {acknowledged} acknowledged, {found} found"
            );
            quorum.propose(vec![topic(99)]).await.unwrap();
            assert_eq!(quorum.image().topic_count(), found + 1);
        }
    }
}

#[tokio::test]
async fn a_full_disk_refuses_and_heals() {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    quorum.propose(vec![topic(1)]).await.unwrap();
    machine.sim.disk.set_capacity_bytes(machine.sim.disk.used_bytes() + 10);
    assert!(matches!(quorum.propose(vec![topic(2)]).await, Err(QuorumError::Storage(_))));
    assert_eq!(names(&quorum.image()), ["topic-1"]);
    machine.sim.disk.set_capacity_bytes(u64::MAX);
    assert_eq!(quorum.propose(vec![topic(3)]).await, Ok(1));
    machine.sim.disk.crash(Crash::PowerLosesAll);
    assert_eq!(names(&machine.open().await.unwrap().image()), ["topic-1", "topic-3"]);
}

#[tokio::test]
async fn after_a_failed_sync_nothing_is_written_until_a_restart() {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    quorum.propose(vec![topic(1)]).await.unwrap();
    machine.sim.disk.fail_sync_at(1);
    for number in 2..=3 {
        assert!(matches!(quorum.propose(vec![topic(number)]).await, Err(QuorumError::Storage(_))));
    }
    machine.sim.disk.crash(Crash::PowerLosesAll);
    let quorum = machine.open().await.unwrap();
    assert_eq!(names(&quorum.image()), ["topic-1"]);
    quorum.propose(vec![topic(4)]).await.unwrap();
}
