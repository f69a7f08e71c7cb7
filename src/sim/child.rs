//! A run in a process of its own: nothing of an earlier run is left in it, and whatever it does, the others go on.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a child tells its parent by its standard output")]

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::{Context, SubscriberExt};

use super::cluster::DISK_TROUBLE;
use super::run::{Report, Setup, run};
use super::scripts::Script;
use crate::base::rules::{self, Rule};
use crate::host::sim::determinism::take_randomness_away;
use crate::host::task::{Moment, moment};

/// What a child is to run: a seed, and perhaps a script and the name of a protection that is switched off; `-`: none.
const WORK: &str = "BARNABAS_SIM_CHILD";

/// What the nodes log is shown from this level on.
const LOG: &str = "BARNABAS_LOG";

const REPORT: &str = "SIM-REPORT ";

/// A run takes well under a second. One that takes this long goes round in a circle without simulated time passing.
const REAL_MAX: Duration = Duration::from_secs(180);

/// Panics and errors of the run, as they came.
static TROUBLE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A node's own complaint. Excused in runs in which a disk was full or failed.
const LOGGED: &str = "error in the log: ";

fn note_trouble(what: String) {
    let mut trouble = TROUBLE.lock().unwrap();
    if trouble.len() < 5 {
        trouble.push(what);
    }
}

/// Runs a seed in a process of its own and waits for its report. `shown`: its log goes to standard error.
pub fn run_apart(setup: Setup, shown: bool) -> Report {
    let script = setup.script.map_or("-".to_owned(), |script| format!("{script:?}"));
    let rule = setup.without.map_or("-".to_owned(), |rule| format!("{rule:?}"));
    let work = format!("{} {script} {rule}", setup.seed);
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["sim::tests::no_seed_breaks_a_promise", "--exact", "--nocapture"])
        .env(WORK, work)
        .stdin(Stdio::null())
        .stderr(if shown { Stdio::inherit() } else { Stdio::null() })
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout).into_owned();
    match output.lines().find_map(|line| line.strip_prefix(REPORT)) {
        Some(report) => serde_json::from_str(report).unwrap(),
        None => Report { violations: vec![format!("died with {}", child.status)], ..Report::default() },
    }
}

/// The child's side: does not come back from there. Anybody else's: nothing.
pub fn work_off() {
    let Ok(work) = std::env::var(WORK) else { return };
    let words: Vec<&str> = work.split(' ').collect();
    let named = |at: usize| Some(words[at]).filter(|word| *word != "-");
    let setup = Setup {
        seed: words[0].parse().unwrap(),
        script: named(1).map(|name| script(name).unwrap()),
        without: named(2).map(|name| rule(name).unwrap()),
    };
    let (done, report) = mpsc::channel();
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        note_trouble(format!("panic: {panic}"));
    }));
    take_randomness_away();
    let thread = std::thread::Builder::new().stack_size(16 << 20);
    let running = thread.spawn(move || {
        let shown = std::env::var(LOG).ok();
        let _logging = tracing::subscriber::set_default(subscriber(shown.as_deref()));
        let _ = done.send(run(setup));
    });
    running.unwrap();
    let mut report = report.recv_timeout(REAL_MAX).unwrap_or_else(|error| Report {
        violations: vec![format!("the run did not come to its end: {error}")],
        ..Report::default()
    });
    let may_complain = report.counts.keys().any(|name| DISK_TROUBLE.contains(&name.as_str()));
    let trouble = std::mem::take(&mut *TROUBLE.lock().unwrap());
    report.violations.extend(trouble.into_iter().filter(|what| !may_complain || !what.starts_with(LOGGED)));
    println!("\n{REPORT}{}", serde_json::to_string(&report).unwrap());
    // What is left of the simulated nodes is not worth taking apart.
    std::process::exit(0);
}

pub fn rule(name: &str) -> Option<Rule> {
    rules::ALL.iter().copied().find(|rule| format!("{rule:?}") == name)
}

pub fn script(name: &str) -> Option<Script> {
    Script::ALL.iter().copied().find(|script| format!("{script:?}") == name)
}

fn subscriber(shown: Option<&str>) -> Box<dyn Subscriber + Send + Sync> {
    let errors = Errors.with_filter(LevelFilter::ERROR);
    let Some(filter) = shown else { return Box::new(tracing_subscriber::registry().with(errors)) };
    let targets: Targets = filter.parse().expect("levels as in RUST_LOG");
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_timer(SimulatedTime(moment()))
        .with_filter(targets);
    Box::new(tracing_subscriber::registry().with(errors).with(lines))
}

/// Milliseconds since the run began.
struct SimulatedTime(Moment);

impl FormatTime for SimulatedTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{:>10.3}", moment().saturating_duration_since(self.0).as_secs_f64())
    }
}

/// Errors in the log are problems of the node that no fault excuses.
struct Errors;

impl<S: Subscriber> Layer<S> for Errors {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // The Raft library calls every lost message an error.
        if *event.metadata().level() == Level::ERROR && event.metadata().target().starts_with("barnabas") {
            let mut text = Text(String::new());
            event.record(&mut text);
            note_trouble(format!("{LOGGED}{}{}", event.metadata().target(), text.0));
        }
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}
