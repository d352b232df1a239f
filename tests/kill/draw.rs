//! Draws plays, and what happens to them, from a seed.

use testkit::Op;

use crate::habits::Habits;
use crate::life::Client;
use crate::play::{Play, Step, Task, task, word};
use crate::point::{Blow, Point, any, op};

/// Levels below the root.
const DEPTH: usize = 4;
/// Effects of a run for each agent, about: kills beyond the last one never come.
const EFFECTS_EACH: usize = 25;

/// Numbers that look random and are the same for the same seed (SplitMix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A play in the making.
struct Draft<'a> {
    dice: &'a mut Dice,
    paths: Vec<String>,
    tasks: Vec<Task>,
    /// The last number that a message, a command or a close was given.
    word: usize,
}

/// A tree of 2 to 12 agents, and what each of them does.
pub(crate) fn play(dice: &mut Dice) -> Play {
    let mut paths = vec!["/root".to_owned()];
    let mut parents = vec![0];
    for number in 1..2 + dice.below(11) {
        let shallow: Vec<usize> = (0..number).filter(|at| paths[*at].matches('/').count() <= DEPTH).collect();
        let parent = *dice.pick(&shallow);
        paths.push(format!("{}/n{number}", paths[parent]));
        parents.push(parent);
    }
    let tasks = paths.iter().map(|path| Task { agent: path.clone(), ..Task::default() }).collect();
    let mut draft = Draft { dice, paths, tasks, word: 0 };
    for number in 0..parents.len() {
        let children: Vec<usize> = (1..parents.len()).filter(|child| parents[*child] == number).collect();
        let mut replies = draft.small_things();
        draft.family(&children, &mut replies);
        replies.extend(draft.small_things());
        let thinks = if draft.dice.percent(30) { draft.dice.below(300) as u64 } else { 0 };
        let long = draft.dice.percent(8);
        let agent = draft.paths[number].clone();
        draft.tasks[number] = Task { agent, replies, thinks, long };
    }
    Play { tasks: draft.tasks }
}

impl Draft<'_> {
    fn next_word(&mut self) -> usize {
        self.word += 1;
        self.word
    }

    /// Some messages and commands.
    fn small_things(&mut self) -> Vec<Vec<Step>> {
        let mut replies = Vec::new();
        while self.dice.percent(40) {
            let steps = 1 + self.dice.below(3);
            replies.push((0..steps).map(|_| self.small_thing()).collect());
        }
        replies
    }

    fn small_thing(&mut self) -> Step {
        let word = self.next_word();
        match self.dice.below(10) {
            0 => Step::Run { word, background: true },
            1 | 2 => Step::Run { word, background: false },
            _ => Step::Tell { to: self.dice.pick(&self.paths).clone(), word },
        }
    }

    /// A further task for an agent.
    fn further(&mut self, agent: usize) -> usize {
        let replies = self.small_things();
        let thinks = if self.dice.percent(20) { self.dice.below(200) as u64 } else { 0 };
        self.tasks.push(Task { agent: self.paths[agent].clone(), replies, thinks, long: false });
        self.tasks.len() - 1
    }

    /// What an agent does with its children.
    fn family(&mut self, children: &[usize], replies: &mut Vec<Vec<Step>>) {
        let mut spawns: Vec<Vec<Step>> = Vec::new();
        for child in children {
            match spawns.last_mut() {
                Some(reply) if self.dice.percent(60) => reply.push(Step::Spawn(*child)),
                _ => spawns.push(vec![Step::Spawn(*child)]),
            }
        }
        replies.extend(spawns);
        replies.extend(self.small_things());
        let (mut awaited, mut closes, mut anew) = (Vec::new(), Vec::new(), Vec::new());
        for child in children {
            let agent = self.paths[*child].clone();
            match self.dice.below(100) {
                0..20 => {
                    let again = self.further(*child);
                    replies.extend([vec![Step::Interrupt { agent, nth: 1 }], vec![Step::Follow(again)]]);
                    awaited.push(again);
                }
                20..35 => {
                    let again = self.further(*child);
                    replies.extend([vec![Step::Await(vec![*child])], vec![Step::Follow(again)]]);
                    awaited.push(again);
                }
                35..50 => {
                    let again = self.further(*child);
                    replies.push(vec![Step::Follow(again)]);
                    awaited.extend([*child, again]);
                }
                50..60 => {}
                60..75 => closes.push(Step::Close { agent, word: self.next_word() }),
                75..85 => {
                    closes.push(Step::Close { agent, word: self.next_word() });
                    anew.push(self.further(*child));
                }
                _ => awaited.push(*child),
            }
        }
        if !awaited.is_empty() {
            replies.push(vec![Step::Await(awaited)]);
        }
        replies.extend(closes.into_iter().map(|close| vec![close]));
        if !anew.is_empty() {
            replies.push(anew.iter().map(|task| Step::Spawn(*task)).collect());
            replies.push(vec![Step::Await(anew)]);
        }
    }
}

/// People who come in while the play runs; their tasks are added to it.
pub(crate) fn clients(dice: &mut Dice, play: &mut Play) -> Vec<Client> {
    let agents = play.tasks.len();
    let mut clients = Vec::new();
    while clients.len() < 3 && dice.percent(45) {
        let to = dice.pick(&play.tasks[..agents]).agent.clone();
        let queue = dice.percent(40);
        let number = play.tasks.len();
        let words = if queue { word(1000 + number) } else { task(number) };
        play.tasks.push(Task { agent: to.clone(), ..Task::default() });
        clients.push(Client { after: 1 + dice.below(4 * agents), to, words, queue, dies: dice.percent(50) });
    }
    clients
}

/// Where a run of the play is killed; now and then the power goes with it, or the disk fails instead.
pub(crate) fn in_the_run(dice: &mut Dice, play: &Play) -> Point {
    let point = match dice.below(10) {
        0 => op(Op::Sync, 1 + dice.below(EFFECTS_EACH * play.tasks.len() / 3)),
        1 => op(Op::Create, 1 + dice.below(play.tasks.len())),
        _ => any(1 + dice.below(EFFECTS_EACH * play.tasks.len())),
    };
    drawn(dice, point)
}

/// Where a takeover is killed.
pub(crate) fn in_a_takeover(dice: &mut Dice, play: &Play) -> Point {
    let point = any(1 + dice.below(12 * play.tasks.len()));
    drawn(dice, point)
}

fn drawn(dice: &mut Dice, point: Point) -> Point {
    let point = point.when(dice.below(3));
    match dice.below(100) {
        0..75 => point,
        75..88 => point.power(),
        88..92 => point.with(Blow::Full),
        92..94 => point.with(Blow::Full).for_good(),
        94..97 => point.with(Blow::Broken),
        _ => point.with(Blow::Slow),
    }
}

/// A model with habits: some answer each time as a good one would.
pub(crate) fn habits(dice: &mut Dice, seed: u64) -> Habits {
    let storms = if dice.percent(20) { 8 } else { 0 };
    Habits { seed, same_ids: dice.percent(25), shape: dice.below(Habits::SHAPES), storms }
}
