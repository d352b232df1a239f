//! What the home of a play goes through: commands that are killed, clients that come in, takeovers, and a good end.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use testkit::{Agent, Gate, Home, Run, Running, Server};

use crate::case::{KILLED, changed, sessions, take_over};
use crate::habits::Habits;
use crate::play::Play;
use crate::point::{Point, Seen};
use crate::scene::Scene;
use crate::tally::{Ask, Told, assert_played};
use crate::verify::{load, no_orphans};

/// What a command exits with whose task somebody interrupted or closed.
const INTERRUPTED: i32 = 130;

/// A home, its model, and what has happened so far.
pub(crate) struct Life {
    pub(crate) scene: Scene,
    pub(crate) play: Play,
    told: Vec<Told>,
    requests: std::sync::Arc<Requests>,
    habits: Habits,
    /// After so many requests of the next command somebody presses Ctrl-C.
    interrupt: Option<usize>,
    /// The command that was last, and what it did to the disk.
    last: Option<(Run, Vec<Seen>)>,
}

/// Counts requests, and opens a gate at one of them.
#[derive(Default)]
struct Requests {
    seen: AtomicUsize,
    wanted: Mutex<Vec<(usize, Gate)>>,
}

impl Requests {
    /// One more; how many there are now.
    fn one(&self) -> usize {
        let seen = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        self.wanted.lock().unwrap().iter().filter(|(at, _)| *at <= seen).for_each(|(_, gate)| gate.open());
        seen
    }

    /// Opens when so many more have come.
    fn after(&self, more: usize) -> Gate {
        let gate = Gate::new();
        self.wanted.lock().unwrap().push((self.seen.load(Ordering::SeqCst) + more, gate.clone()));
        gate
    }
}

/// Words of a person that are sent while a command runs.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// After so many requests to the model.
    pub(crate) after: usize,
    pub(crate) to: String,
    pub(crate) words: String,
    /// Left there only; else they are a task.
    pub(crate) queue: bool,
    /// Whether it is killed when the command is.
    pub(crate) dies: bool,
}

impl Client {
    fn args(&self) -> Vec<&str> {
        let queue = self.queue.then_some("--queue");
        ["send"].into_iter().chain(queue).chain([self.to.as_str(), self.words.as_str()]).collect()
    }
}

impl Life {
    pub(crate) fn new(play: &Play, prepare: impl FnOnce(Home) -> Home) -> Self {
        Self::with_habits(play, Habits::default(), prepare)
    }

    /// With a model that has habits.
    pub(crate) fn with_habits(play: &Play, habits: Habits, prepare: impl FnOnce(Home) -> Home) -> Self {
        Self::at_home(play, habits, |server| prepare(Home::new().provider("mock", server)))
    }

    fn at_home(play: &Play, habits: Habits, home: impl FnOnce(&Server) -> Home) -> Self {
        let requests = std::sync::Arc::new(Requests::default());
        let (model, count) = (play.clone(), requests.clone());
        let server = Server::start(move |request: &testkit::Request| habits.on(model.answer(request), count.one()));
        let scene = Scene { home: home(&server), server };
        Self { scene, play: play.clone(), told: Vec::new(), requests, habits, interrupt: None, last: None }
    }

    /// The same files again, with a model of their own.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::at_home(&self.play, self.habits, |server| self.scene.home.copy().provider("mock", server));
        Self { told: self.told.clone(), ..copy }
    }

    /// Whether the model always answers in the end.
    pub(crate) fn is_good_natured(&self) -> bool {
        self.habits.storms == 0
    }

    /// Leaves its folders where they are, for somebody to look at.
    pub(crate) fn keep(&mut self) -> PathBuf {
        self.scene.home.keep()
    }

    /// Somebody presses Ctrl-C after so many requests of the next command.
    pub(crate) fn interrupt_after(&mut self, requests: usize) {
        self.interrupt = Some(requests);
    }

    /// Runs a command that may be killed at `point`, and clients beside it. Whether it was killed.
    pub(crate) fn lives(&mut self, args: &[&str], point: Option<&Point>, clients: &[Client]) -> bool {
        let over = AtomicBool::new(false);
        let gates: Vec<Gate> = clients.iter().map(|client| self.requests.after(client.after)).collect();
        let started: Vec<Mutex<Option<Running>>> = clients.iter().map(|_| Mutex::new(None)).collect();
        let stop = self.interrupt.take().map(|after| self.requests.after(after));
        let run = std::thread::scope(|scope| {
            for ((client, gate), running) in clients.iter().zip(&gates).zip(&started) {
                let (scene, over) = (&self.scene, &over);
                scope.spawn(move || {
                    gate.wait();
                    if !over.load(Ordering::SeqCst) {
                        *running.lock().unwrap() = Some(scene.command(&client.args()).spawn());
                    }
                });
            }
            let running = self.scene.planned(args, point).spawn();
            if let Some(stop) = &stop {
                let (pid, over) = (running.pid(), &over);
                scope.spawn(move || {
                    stop.wait();
                    if !over.load(Ordering::SeqCst) {
                        Agent::new("/bin/sh", &Home::new()).args(["-c", &format!("kill -INT {pid}")]).run();
                    }
                });
            }
            let run = running.wait();
            over.store(true, Ordering::SeqCst);
            gates.iter().chain(&stop).for_each(Gate::open);
            run
        });
        let effects = self.scene.effects();
        let killed = effects.is_none();
        assert!((run.code == KILLED) == killed, "{point:?}: {run:?}");
        self.last = Some((run, effects.unwrap_or_default()));
        for (client, running) in clients.iter().zip(started) {
            let Some(running) = running.into_inner().unwrap() else { continue };
            if killed && client.dies {
                running.kill();
            }
            self.heard(client, &running.wait());
        }
        if killed && point.is_some_and(Point::loses_power) {
            self.scene.end_processes();
        }
        killed
    }

    /// A client has come to its end.
    fn heard(&mut self, client: &Client, run: &Run) {
        let why = run.stderr.contains("error: ");
        let told = run.code == 0 || run.code == KILLED || ([1, 2, 3, INTERRUPTED].contains(&run.code) && why);
        assert!(told, "{client:?}: {run:?}");
        self.told.push(Told { words: client.words.clone(), accepted: run.code == 0 });
    }

    /// Whether the last command told whoever gave it how it ended, and did not just break down.
    pub(crate) fn has_an_answer(&self) {
        let (run, _) = self.last.as_ref().unwrap();
        assert!([0, 1, 2, 3].contains(&run.code) && !run.stderr.contains("panicked"), "{run:?}");
        assert!(run.code == 0 || run.stderr.contains("error: "), "{run:?}");
    }

    /// What the last command did to the disk.
    pub(crate) fn effects(&self) -> &[Seen] {
        &self.last.as_ref().unwrap().1
    }

    /// From now on the model is a good one.
    pub(crate) fn calm(&mut self) {
        self.habits.storms = 0;
        let (model, habits) = (self.play.clone(), self.habits);
        self.scene.server.set_brain(move |request: &testkit::Request| habits.on(model.answer(request), 0));
    }

    /// Sends what nobody has accepted yet.
    pub(crate) fn send_again(&mut self, clients: &[Client]) {
        for client in clients {
            let agents = load(self.scene.home.path());
            let mut mails = agents.iter().flat_map(|(_, lines)| crate::verify::mails(lines));
            if !mails.any(|mail| mail.body.contains(&client.words)) {
                // Refused with 2, and words that say so, when somebody has closed that agent meanwhile.
                let run = self.scene.agent(&client.args());
                self.heard(client, &run);
            }
        }
    }

    /// Whether there is a tree at all; if the first write of the root was not whole, every command says so.
    pub(crate) fn began(&self) -> bool {
        if load(self.scene.home.path()).iter().any(|(state, _)| state.meta.parent_thread_id.is_none()) {
            return true;
        }
        for args in [&["resume", "--continue"][..], &["tree"]] {
            let run = self.scene.agent(args);
            assert!(run.code == 2 && run.stderr.contains("no tree"), "{run:?}");
        }
        false
    }

    /// Taken over, no process runs on and nothing is said or written a second time.
    pub(crate) fn is_taken_over(&self) {
        let first = take_over(&self.scene);
        no_orphans(&self.scene);
        let taken = sessions(&self.scene);
        let second = take_over(&self.scene);
        assert_eq!(changed(&taken, &sessions(&self.scene)), [""; 0], "it wrote twice: {first:?} {second:?}");
        for news in ["broke off", "sent on now", "unfinished write", "set aside", "ended what a crash left"] {
            assert!(!second.stdout.contains(news) && !second.stderr.contains(news), "told twice: {second:?}");
        }
    }

    /// Goes on until nothing is left to do.
    pub(crate) fn goes_on(&self) -> Run {
        let run = self.scene.agent(&["resume", "--continue"]);
        // That of the first task that went on, which may have ended in any way.
        assert!([0, 1, 3, INTERRUPTED].contains(&run.code), "{run:?}");
        run
    }

    /// Everything is counted, and a tree at rest stays as it is.
    pub(crate) fn ends(&self, ask: Ask) {
        assert_played(&self.scene, &self.play, &self.told, ask);
        let rest = sessions(&self.scene);
        let last = take_over(&self.scene);
        assert_eq!(changed(&rest, &sessions(&self.scene)), [""; 0], "a tree at rest was written to: {last:?}");
    }
}

/// Does `work` for each of `all`, so many at a time; fails, with all that went wrong, when something did.
pub(crate) fn side_by_side<T: Sync>(
    jobs: usize,
    all: &[T],
    name: impl Fn(&T) -> String + Sync,
    work: impl Fn(&T) + Sync,
) {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(one)));
                    if let Err(panic) = done {
                        wrong.lock().unwrap().push(format!("{}: {}", name(one), why(&*panic)));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} went wrong:\n{}", wrong.len(), all.len(), wrong.join("\n\n"));
}

/// The words of a panic.
pub(crate) fn why(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words")
}
