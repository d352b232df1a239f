//! The command `agent`.

use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    ExitCode::from(agent::run(std::env::args_os(), Arc::new(rollout::RealDisk)))
}
