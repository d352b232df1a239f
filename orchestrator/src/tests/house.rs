//! A home with one tree, and what must hold of it at the end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use protocol::{AgentPath, Approval, EventKind, ProcessEvent, ProcessRecord, Sandbox, Token, TreeEvent, TreeId};
use rollout::{Limits, OwnerHint, Record, Store};
use stdx::AbsPath;
use testkit::FaultDisk;
use tokio::sync::mpsc::UnboundedReceiver;
use tool_api::{AgentFacts, Hands, Running, Swept, SweptHow, Tool, Workshop};

use super::player::{Asked, Player, Step};
use frontend::Report as TakeoverReport;

use crate::{Options, Pending, Tree};

/// A name that opens without a network; the player stands in for what it opens.
const MODEL: &str = "rehearsal";

pub(super) struct House {
    folder: tempfile::TempDir,
    pub(super) disk: FaultDisk,
    pub(super) store: Store,
    pub(super) player: Arc<Player>,
    pub(super) options: Options,
    /// How many processes an agent has running.
    pub(super) processes: Arc<Processes>,
}

#[derive(Default)]
pub(super) struct Processes(pub(super) Mutex<HashMap<String, usize>>);

struct Empty {
    processes: Arc<Processes>,
    path: String,
}

struct Shop(Arc<Processes>);

impl Workshop for Shop {
    fn hands(&self, agent: &AgentFacts) -> Arc<dyn Hands> {
        Arc::new(Empty { processes: Arc::clone(&self.0), path: agent.agent.path.to_string() })
    }

    /// Nothing can be ended.
    fn sweep(&self, ledger: Vec<ProcessRecord>) -> BoxFuture<'_, Vec<Swept>> {
        let left = ledger.into_iter().filter_map(|record| match record.event {
            ProcessEvent::Starting { command, .. } => {
                Some(Swept { token: record.token, command, how: SweptHow::Survives })
            }
            _ => None,
        });
        Box::pin(async { left.collect() })
    }

    fn end_all(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.0.0.lock().unwrap().clear() })
    }
}

impl Hands for Empty {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn running(&self) -> Vec<Running> {
        let count = self.processes.0.lock().unwrap().get(&self.path).copied().unwrap_or(0);
        (0..count).map(|_| Running { token: Token::new(), pid: 1, command: "sleep".to_owned() }).collect()
    }

    fn end_processes(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl House {
    pub(super) fn new(plays: impl Fn(&Asked) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = AbsPath::new(folder.path()).unwrap();
        let disk = FaultDisk::new();
        let store = Store::new(home.clone(), Arc::new(disk.clone()));
        let player = Player::new(store.clone(), plays);
        let processes = Arc::new(Processes::default());
        let http = http::Http::new(http::Proxies::default());
        let options = Options {
            store: store.clone(),
            mirror: mirror::Mirror::open(&home).0,
            catalog: Arc::new(model::Catalog::new([], http, std::collections::BTreeMap::new(), home.clone())),
            workshop: Arc::new(Shop(Arc::clone(&processes))),
            roles: roles::Roles::builtin(),
            owner: OwnerHint { pid: 1, start_time: 1, socket: None },
            alive: |_| false,
            limits: Limits {
                max_running: 8,
                max_resident: 64,
                max_depth: 4,
                max_agents: 100,
                roles: Vec::new(),
                budgets: rollout::Budgets::default(),
            },
            prices: std::collections::BTreeMap::new(),
            sandbox: Sandbox::ReadOnly,
            approval: Approval::Never,
            model: Some(MODEL.to_owned()),
            effort: None,
            cwd: home,
            shell: "sh".to_owned(),
            version: "0".to_owned(),
            retry: model::RetryLimits::default(),
            stall_after: None,
        };
        Self { folder, disk, store, player, options, processes }
    }

    /// Makes a tree whose agents all talk to the player. Nothing runs yet.
    pub(super) async fn tree(&self, prompt: &str) -> (Tree, Pending) {
        let (tree, pending) = Tree::create(self.options.clone(), prompt).await.unwrap();
        self.play(&tree);
        (tree, pending)
    }

    /// Takes a tree over as another process would: with a store of its own.
    pub(super) async fn again(&self, id: TreeId) -> (Tree, TakeoverReport) {
        let store = Store::new(self.store.home().clone(), Arc::new(self.disk.clone()));
        let (tree, report) = Tree::open(Options { store, ..self.options.clone() }, id).await.unwrap();
        self.play(&tree);
        (tree, report)
    }

    pub(super) fn play(&self, tree: &Tree) {
        let player = Arc::<Player>::clone(&self.player);
        tree.0.models.lock().unwrap().insert(MODEL.to_owned(), player);
    }

    /// Files of agents, by what is on disk.
    pub(super) fn agents(&self) -> usize {
        let scan = self.store.scan().unwrap();
        assert!(scan.unborn.is_empty() && scan.problems.is_empty(), "{:?} {:?}", scan.unborn, scan.problems);
        scan.heads.len()
    }

    /// All lines of the agent that lives at `path`.
    pub(super) fn records(&self, path: &str) -> Vec<Record> {
        let scan = self.store.scan().unwrap();
        let head = scan.heads.iter().find(|head| head.meta.agent_path.as_str() == path).unwrap();
        self.store.read(head.meta.id).unwrap().lines.into_iter().map(|line| line.record).collect()
    }

    /// Waits for quiet, ends the tree, and checks what must hold whatever the test did.
    pub(super) async fn finish(self, tree: Tree) {
        tree.quiet().await;
        self.close(tree).await;
        let mut given = HashMap::new();
        for head in self.store.scan().unwrap().heads {
            let lines = self.store.read(head.meta.id).unwrap().lines;
            let findings: Vec<String> = rollout::check(&lines).iter().map(ToString::to_string).collect();
            assert_eq!(findings, [""; 0], "{}", head.meta.agent_path);
            let state = self.store.load(head.meta.id).unwrap().state;
            assert_eq!(state.obligations, [], "{} owes", head.meta.agent_path);
            assert_eq!(state.open_turn, None, "{}", head.meta.agent_path);
            for line in lines {
                match line.record {
                    Record::Mail(mail) if mail.kind.is_task() => *given.entry(mail.id).or_insert(0) += 1,
                    Record::TaskDone(done) => *given.entry(done.task).or_insert(0) -= 1,
                    _ => {}
                }
            }
            for mail in state.pending.iter().filter(|mail| mail.kind.is_task()) {
                *given.entry(mail.id).or_insert(0) -= 1;
            }
        }
        assert!(given.values().all(|open| *open == 0), "each task is pending or ended once: {given:?}");
        drop(self.folder);
    }

    /// Ends the tree and checks that it has let go of everything.
    pub(super) async fn close(&self, tree: Tree) {
        tree.shut_down().await;
        assert_eq!(*self.player.wrong.lock().unwrap(), [""; 0]);
        assert_eq!(tree.0.slots.in_use(), (0, 0), "slots");
        assert!(tree.0.tracker.is_empty());
        assert!(!tree.is_busy());
        let id = tree.id();
        drop(tree);
        drop(self.store.lock(id, &self.options.owner).expect("the lock is free"));
    }
}

/// The path of an agent.
pub(super) fn path(text: &str) -> AgentPath {
    AgentPath::root().resolve(text).unwrap()
}

/// Waits for the first event that this holds of.
pub(super) async fn event(
    events: &mut UnboundedReceiver<Arc<TreeEvent>>,
    holds: impl Fn(&TreeEvent) -> bool,
) -> Arc<TreeEvent> {
    loop {
        let event = events.recv().await.unwrap();
        if holds(&event) {
            return event;
        }
    }
}

/// The events so far.
pub(super) fn so_far(events: &mut UnboundedReceiver<Arc<TreeEvent>>) -> Vec<(String, EventKind)> {
    std::iter::from_fn(|| events.try_recv().ok()).map(|event| (event.path.to_string(), event.kind.clone())).collect()
}
