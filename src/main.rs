//! The program: an allocator, and the command line.

use std::process::ExitCode;

use barnabas::{cli, host};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    host::real::refuse_huge_pages();
    cli::run(std::env::args_os(), std::env::vars_os(), barnabas::server::run)
}
