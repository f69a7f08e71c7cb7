//! A power cut at every single change of the disk, and what must be there afterwards: A1, A2, A6, A7 for one disk, C1.

mod log_support;

use barnabas::base::Offset;
use barnabas::host::sim::Crash;
use barnabas::log::{AppendError, Log, LogError, OpenHow};
use log_support::*;

/// What somebody outside knows when the power goes.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Values in the order of their offsets, also those whose append was cut.
    sent: Vec<String>,
    /// Everything below has been flushed: acknowledged.
    acknowledged: Offset,
    /// What `recovery-point-offset-checkpoint` may hold: the last two.
    recovery_points: [Offset; 2],
    next_sequence: i32,
    closed: bool,
}

impl Known {
    fn send(&mut self, log: &mut Log, plain: bool) -> Result<(), AppendError> {
        let bytes = if plain {
            let value = format!("plain {}", self.sent.len());
            self.sent.push(value.clone());
            batch(&[&value])
        } else {
            let (sequence, count) = (self.next_sequence, 1 + self.next_sequence as usize % 3);
            self.next_sequence += count as i32;
            self.sent.extend((0..count).map(|at| format!("7/0/{sequence}+{at}")));
            sequenced(7, 0, sequence, count)
        };
        append(log, &bytes).map(drop)
    }

    fn flush(&mut self, log: &mut Log) -> Result<(), LogError> {
        log.flush()?;
        self.acknowledged = log.flushed_offset();
        Ok(())
    }

    fn checkpoint(&mut self, log: &mut Log) -> Result<(), LogError> {
        self.recovery_points = [self.recovery_points[1], log.checkpoint()?];
        Ok(())
    }
}

/// A little of everything. Stops at the first error, as when the power has gone.
fn work(bench: &Bench, known: &mut Known) -> Result<(), AppendError> {
    let (mut log, _) = bench.try_open(OpenHow::default())?;
    log.assign_epoch(0);
    for round in 0..14 {
        for step in 0..4 {
            known.send(&mut log, (round + step) % 3 == 0)?;
        }
        if round % 2 == 1 {
            known.flush(&mut log)?;
        }
        if round % 5 == 4 {
            known.checkpoint(&mut log)?;
        }
    }
    known.acknowledged = log.log_end_offset();
    log.close()?;
    known.closed = true;
    Ok(())
}

fn bench(seed: u64) -> Bench {
    let mut bench = Bench::new(seed);
    bench.config.segment_bytes = 1500;
    bench.config.index_interval_bytes = 200;
    bench
}

fn check(bench: &mut Bench, known: &Known, recovery_point: Offset, at: &str) {
    let (mut log, _) = bench.open_from(recovery_point);
    let found = values(&log);
    assert!(found.len() as Offset >= known.acknowledged, "{at}: {} of {known:?}", found.len());
    assert_eq!(found, known.sent[..found.len()], "{at}");
    assert_eq!(log.flushed_offset(), log.log_end_offset(), "{at}: what is served is on the device");
    check_sequences(&mut log, &found, at);
    let end = log.log_end_offset();
    append(&mut log, &batch(&["after"])).unwrap();
    log.flush().unwrap();
    drop(log);
    bench.crash(Crash::PowerLosesAll);
    let (log, recovery) = bench.open_from(recovery_point);
    assert_eq!(log.log_end_offset(), end + 1, "{at}: {recovery:?}");
    assert_eq!((recovery.truncated_bytes, recovery.segments_removed), (0, 0), "{at}: recovery is idempotent");
}

/// The producer's last batches that are there are known, and the next sequence is the one behind them.
fn check_sequences(log: &mut Log, found: &[String], at: &str) {
    let firsts = found.iter().enumerate().filter_map(|(offset, value)| {
        let sequence: i32 = value.strip_prefix("7/0/")?.strip_suffix("+0")?.parse().ok()?;
        Some((offset as Offset, sequence))
    });
    let firsts: Vec<(Offset, i32)> = firsts.collect();
    for (offset, sequence) in firsts.iter().rev().take(5) {
        let count = 1 + *sequence as usize % 3;
        let again = append(log, &sequenced(7, 0, *sequence, count)).unwrap();
        assert_eq!((again.base_offset, again.duplicate), (*offset, true), "{at}: sequence {sequence}");
    }
    if let Some((_, last)) = firsts.last() {
        let gap = last + 1 + last % 3 + 1;
        let refused = append(log, &sequenced(7, 0, gap, 1));
        assert!(matches!(refused, Err(AppendError::OutOfOrderSequence { .. })), "{at}: {refused:?}");
    }
}

fn preallocating(seed: u64) -> Bench {
    let mut bench = bench(seed);
    bench.config.preallocate = true;
    bench
}

#[test]
fn a7_every_acknowledged_batch_survives_a_power_cut_at_any_change() {
    survives_a_power_cut_at_any_change(bench);
}

#[test]
fn a7_holds_with_preallocate_too() {
    survives_a_power_cut_at_any_change(preallocating);
}

fn survives_a_power_cut_at_any_change(bench: fn(u64) -> Bench) {
    let whole = bench(0);
    let mut known = Known::default();
    work(&whole, &mut known).unwrap();
    let changes = whole.sim.disk.write_count();
    assert!(changes > 100, "{changes}");
    let mut crashes = 0;
    for how in [Crash::Process, Crash::PowerLosesAll, Crash::PowerLosesSome] {
        for cut in 1..=changes {
            for older_checkpoint in [true, false] {
                let mut bench = bench(cut);
                let before = bench.sim.disk.write_count();
                bench.sim.disk.cut_power_at(cut);
                let mut known = Known::default();
                let outcome = work(&bench, &mut known);
                assert!(outcome.is_err() || cut > changes - before);
                bench.crash(how);
                let recovery_point = known.recovery_points[usize::from(!older_checkpoint)];
                check(&mut bench, &known, recovery_point, &format!("{how:?}, cut {cut}, {older_checkpoint}"));
                crashes += 1;
            }
        }
    }
    assert!(crashes > 600, "{crashes}");
}

#[test]
fn a7_a_power_cut_during_recovery_loses_nothing_either() {
    for how in [Crash::PowerLosesAll, Crash::PowerLosesSome] {
        for cut in (5..120).step_by(6) {
            for second_cut in 1..12 {
                let mut bench = bench(cut * 31 + second_cut);
                bench.sim.disk.cut_power_at(cut);
                let mut known = Known::default();
                let _ = work(&bench, &mut known);
                bench.crash(how);
                bench.sim.disk.cut_power_at(second_cut);
                let recovery_point = known.recovery_points[0];
                let _ = bench.try_open(OpenHow { recovery_point, ..OpenHow::default() });
                bench.crash(how);
                check(&mut bench, &known, recovery_point, &format!("{how:?}, cuts {cut} and {second_cut}"));
            }
        }
    }
}

#[test]
fn after_a_clean_stop_nothing_is_checked_and_nothing_changed() {
    let mut bench = bench(1);
    let mut known = Known::default();
    work(&bench, &mut known).unwrap();
    assert!(known.closed);
    bench.crash(Crash::Process);
    let before = bench.sim.disk.write_count();
    let recovery_point = known.sent.len() as i64;
    let how = OpenHow { clean_shutdown: true, recovery_point, log_start_offset: None };
    let (log, recovery) = bench.try_open(how).unwrap();
    assert_eq!(recovery, Default::default());
    assert_eq!(bench.sim.disk.write_count(), before);
    assert_eq!(values(&log), known.sent);
}

#[test]
fn a_power_cut_after_a_clean_stop_takes_only_what_can_be_made_anew() {
    for how in [Crash::PowerLosesAll, Crash::PowerLosesSome] {
        for seed in 0..20 {
            let mut bench = bench(seed);
            let mut known = Known::default();
            work(&bench, &mut known).unwrap();
            bench.crash(how);
            let (mut log, recovery) = bench.open_clean();
            assert_eq!(recovery.truncated_bytes, 0);
            assert_eq!(values(&log), known.sent);
            check_sequences(&mut log, &known.sent, "clean");
        }
    }
}
