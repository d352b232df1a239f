//! Random lives: a play, limits, a model with habits and kills, all drawn from one seed; then everything is counted.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use testkit::child_value;

use crate::draw::{self, Dice};
use crate::life::{Life, why};
use crate::point::Point;
use crate::sweep;
use crate::tally::{ALL, Ask};
use crate::verify::{load, mails};

/// What `cargo xtask torture` asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Orders {
    seed: u64,
    /// Runs until so many seconds are over, or, without them, so many lives.
    seconds: Option<u64>,
    lives: u64,
    jobs: usize,
    /// The sweep over every point of the family instead.
    sweep: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    lives: usize,
    kills: usize,
    takeovers: usize,
    mails: usize,
    tasks: usize,
}

impl Figures {
    fn add(&mut self, other: Self) {
        self.lives += other.lives;
        self.kills += other.kills;
        self.takeovers += other.takeovers;
        self.mails += other.mails;
        self.tasks += other.tasks;
    }
}

/// A life that did not hold.
struct Violation {
    seed: u64,
    home: PathBuf,
    text: String,
}

/// Lives the life of this seed.
fn live(seed: u64) -> Result<Figures, Violation> {
    let mut dice = Dice::new(seed);
    let mut play = draw::play(&mut dice);
    let clients = draw::clients(&mut dice, &mut play);
    let [running, resident] = [1, 2].map(|least| i64::try_from(least + dice.below(8)).unwrap());
    let habits = draw::habits(&mut dice, seed);
    let mut life = Life::with_habits(&play, habits, |home| {
        let home = home.set("max_running", running).set("max_resident", resident).set("max_depth", 5);
        home.set("providers.mock.idle_timeout_ms", 1_000)
    });
    let lived = catch_unwind(AssertUnwindSafe(|| through(&mut life, &mut dice, &clients)));
    lived.map_err(|panic| Violation { seed, home: life.keep(), text: why(&*panic).to_owned() })
}

fn through(life: &mut Life, dice: &mut Dice, clients: &[crate::life::Client]) -> Figures {
    let mut figures = Figures { lives: 1, ..Figures::default() };
    let mut ask = Ask { done: life.is_good_natured(), ..ALL };
    let run = ["run", "TASK-0: do all of it."];
    let mut next = (&run[..], (!dice.percent(10)).then(|| draw::in_the_run(dice, &life.play)), clients);
    for round in 0.. {
        let (args, point, clients) = next;
        if dice.percent(15) {
            life.interrupt_after(1 + dice.below(3 * life.play.tasks.len()));
        }
        let killed = life.lives(args, point.as_ref(), clients);
        figures.kills += usize::from(killed);
        let fails = point.as_ref().is_some_and(Point::fails);
        ask = Ask { done: ask.done && !fails, sound: ask.sound && !fails, ..ask };
        ask.remembered &= !(killed && point.is_some_and(|point| point.loses_power()));
        if round > 0 {
            figures.takeovers += 1;
        }
        if !life.began() {
            return figures;
        }
        if round == 4 || dice.percent(40) {
            break;
        }
        next = match dice.below(3) {
            0 => (&["resume"], Some(draw::in_a_takeover(dice, &life.play)), &[]),
            1 => (&["resume", "--continue"], Some(draw::in_a_takeover(dice, &life.play)), &[]),
            _ => (&["resume", "--continue"], Some(draw::in_the_run(dice, &life.play)), &[]),
        };
    }
    life.is_taken_over();
    life.goes_on();
    life.send_again(clients);
    life.ends(ask);
    figures.takeovers += 4;
    let agents = load(life.scene.home.path());
    let all = || agents.iter().flat_map(|(_, lines)| mails(lines));
    figures.mails = all().count();
    figures.tasks = all().filter(|mail| mail.kind.is_task()).count();
    figures
}

/// Lives of one seed after the other, until it is enough. The figures, and what did not hold.
fn lives(orders: &Orders) -> (Figures, Vec<Violation>) {
    let until = orders.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let next = AtomicU64::new(0);
    let so_far = Mutex::new((Figures::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..orders.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let over = until.map_or(number >= orders.lives, |until| Instant::now() >= until);
                    if over {
                        return;
                    }
                    let lived = live(orders.seed.wrapping_add(number));
                    let mut so_far = so_far.lock().unwrap();
                    match lived {
                        Ok(figures) => so_far.0.add(figures),
                        Err(violation) => {
                            so_far.0.lives += 1;
                            say(&told(&violation));
                            so_far.1.push(violation);
                        }
                    }
                }
            });
        }
    });
    so_far.into_inner().unwrap()
}

fn told(violation: &Violation) -> String {
    let Violation { seed, home, text } = violation;
    let again = format!("cargo xtask torture --lives 1 --seed {seed}");
    format!("VIOLATION of seed {seed}: {text}\n  the home is kept in {}\n  again: {again}", home.display())
}

/// Past the capture of the test runner.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// What `cargo xtask torture` starts. Does not come back.
#[expect(clippy::disallowed_methods, reason = "the exit code is what the command goes by")]
fn carry_out(orders: &Orders) -> ! {
    // What a violation has to say comes with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    if orders.sweep {
        let points = sweep::every_point();
        say(&format!("{} points", points.len()));
        let swept = catch_unwind(|| sweep::kill_at_all(&points, orders.jobs));
        say(swept.as_ref().map_or_else(|panic| why(&**panic), |()| "no violation"));
        std::process::exit(i32::from(swept.is_err()));
    }
    let (figures, violations) = lives(orders);
    let Figures { lives, kills, takeovers, mails, tasks } = figures;
    let seeds: Vec<String> = violations.iter().map(|violation| violation.seed.to_string()).collect();
    say(&format!(
        "seed {}: {lives} lives, {kills} kills, {takeovers} takeovers, {mails} mails, {tasks} tasks, {} violations {}",
        orders.seed,
        violations.len(),
        seeds.join(" ")
    ));
    std::process::exit(i32::from(!violations.is_empty()));
}

/// Also what `cargo xtask torture` is, with orders.
#[test]
fn a_few_random_lives() {
    if let Some(word) = child_value() {
        carry_out(&serde_json::from_str(&word).unwrap());
    }
    let orders = Orders { seed: 1, seconds: None, lives: 16, jobs: 3, sweep: false };
    let (figures, violations) = lives(&orders);
    let violations: Vec<String> = violations.iter().map(told).collect();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    assert!(figures.kills > 8 && figures.tasks > 30, "{figures:?}");
}

#[test]
fn a_seed_is_a_life() {
    let drawn = |seed| {
        let mut dice = Dice::new(seed);
        let mut play = draw::play(&mut dice);
        let clients = draw::clients(&mut dice, &mut play);
        format!("{play:?} {clients:?} {:?}", draw::in_the_run(&mut dice, &play))
    };
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
}
