//! Floor 10: the command line. `barnabas` alone starts a node; the other commands look at its settings.

mod healthcheck;
mod show;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{self, Loaded, Sources};
use crate::host::Host;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (Kafka 4.4 protocol)");

/// A message broker that speaks the Kafka wire protocol.
#[derive(Debug, Parser)]
#[command(name = "barnabas", version = VERSION, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Settings file; ./config.toml is read without being named if it is there
    #[arg(short, long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// One setting, before all others; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

const AFTER_HELP: &str = "\
Settings have Kafka's names. They come from --set, from the environment (KAFKA_NUM_PARTITIONS=3 sets num.partitions),
from the file, and from the defaults, in this order. `barnabas config` lists them all.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a node (what happens without a command, too)
    Serve,
    /// Print the settings: what they do, their default, their value and where it comes from
    Config {
        /// Only settings whose name holds this text
        name: Option<String>,
        /// Only settings that are set somewhere
        #[arg(long)]
        changed: bool,
    },
    /// Check the settings and say what is wrong with them
    CheckConfig,
    /// Ask the node that runs with these settings on this machine whether it is ready; fails when it is not
    Healthcheck,
}

/// Runs the program to its end. `serve` starts a node and returns when it has stopped.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    serve: impl FnOnce(Loaded) -> Result<(), Box<dyn Error>>,
) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let sources = Sources {
        file: arguments.config,
        environment: environment
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
        set: arguments.set,
    };
    let loaded = match config::load(&sources, &*Host::real().disk) {
        Ok(loaded) => loaded,
        Err(error) => return fail("the settings are wrong", &error.problems),
    };
    match arguments.command.unwrap_or(Command::Serve) {
        Command::Serve => match serve(loaded) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail("cannot serve", &[error.to_string()]),
        },
        Command::Config { name, changed } => match show::settings(&loaded, name.as_deref(), changed) {
            Ok(text) => print(&text),
            Err(problem) => fail("no such setting", &[problem]),
        },
        Command::CheckConfig => print(&show::verdict(&loaded)),
        Command::Healthcheck => match healthcheck::run(&Host::real(), &loaded.settings) {
            Ok(said) => print(&format!("{said}\n")),
            Err(why) => {
                let _ = print(&format!("{why}\n"));
                ExitCode::FAILURE
            }
        },
    }
}

/// Help and version go to standard output and are no failure.
fn usage(error: &clap::Error) -> ExitCode {
    // Nothing better can be done when the terminal is gone.
    drop(error.print());
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

fn fail(what: &str, reasons: &[String]) -> ExitCode {
    let mut text = format!("barnabas: {what}\n");
    for reason in reasons {
        text.push_str(&format!("  {}\n", reason.trim_end().replace('\n', "\n  ")));
    }
    drop(io::stderr().write_all(text.as_bytes()));
    ExitCode::FAILURE
}

/// A reader who has seen enough (`| head`) is no failure.
fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(arguments: &[&str]) -> Arguments {
        Arguments::try_parse_from(std::iter::once("barnabas").chain(arguments.iter().copied())).expect("good arguments")
    }

    #[test]
    fn the_grammar_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_may_stand_before_and_after_the_command() {
        for arguments in [&["-c", "x.toml", "--set", "a=1", "serve"][..], &["serve", "--set", "a=1", "-c", "x.toml"]] {
            let parsed = parse(arguments);
            assert_eq!(parsed.config, Some(PathBuf::from("x.toml")));
            assert_eq!(parsed.set, ["a=1"]);
            assert!(matches!(parsed.command, Some(Command::Serve)));
        }
        assert!(parse(&[]).command.is_none());
    }

    #[test]
    fn wrong_settings_do_not_serve() {
        let arguments = ["barnabas", "-c", "/nowhere/config.toml"].map(OsString::from);
        let code = run(arguments, [], |_| -> Result<(), Box<dyn Error>> { panic!("served") });
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::FAILURE));
    }
}
