//! The program: an allocator, and the command line.

use std::process::ExitCode;

use barnabas::cli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run(std::env::args_os(), std::env::vars_os(), barnabas::server::run)
}
