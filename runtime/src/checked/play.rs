//! Playing a test under many schedules.

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

/// Bytes of stack for a task: the futures of a turn are large in a debug build.
const STACK: usize = 512 * 1024;

/// Points at which a schedule of the second kind takes the turn away from whoever has it. Most races need two or three.
const CHANGES: usize = 3;

/// Plays `test` under `rounds` schedules by chance and as many that change few times but anywhere. The seed is fixed, so
/// that a run is the same each time. A failure prints its schedule; `shuttle::replay` plays that one again.
pub(crate) fn play(rounds: usize, test: impl Fn() + Send + Sync + Clone + 'static) {
    let under = |scheduler: Box<dyn Scheduler + Send>| {
        let mut config = Config::new();
        config.stack_size = STACK;
        config.silence_warnings = true;
        Runner::new(scheduler, config).run(test.clone());
    };
    under(Box::new(RandomScheduler::new_from_seed(SEED, rounds)));
    under(Box::new(PctScheduler::new_from_seed(SEED, CHANGES, rounds)));
}

/// Any number would do.
const SEED: u64 = 0x0a6e_1701;
