//! A tree under the checker: what its agents do, and what must hold of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use protocol::{AgentName, AgentPath, Approval, MailId, ProcessRecord, Sandbox, ThreadId, Token};
use rollout::{Budgets, Edge, Limits, OwnerHint, Record};
use stdx::AbsPath;
use tool_api::{
    AgentFacts, Hands, Invocation, Running, Swept, Tool, ToolError, ToolInput, ToolOutput, ToolSpec, Workshop,
};

use crate::checked::Options;
use crate::checked::fork::Turns;
use crate::checked::life::Keeper;
use crate::checked::node::{Life, Node};
use crate::checked::one::disk::Store;
use crate::checked::one::host::Host as _;
use crate::checked::seam::Mirror;
use crate::checked::spawn::Wanted;
use crate::checked::tree::{Inner, Pending, Tree};
use crate::checked::wait::{Awaited, Verdict, verdict};

/// What an agent does in its life, a call each.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    /// Spawns a child.
    Spawn(&'static str),
    /// Spawns a child whose task has a deadline, far away until somebody hastens it.
    Due(&'static str),
    /// Waits, without its slot, until somebody sends something or nobody works.
    Wait,
}

/// What the agent at a path does.
pub(super) type Plan = fn(&str) -> &'static [Deed];

/// Makes hands, and sees who has some. Std locks: what they guard is looked at between two steps of a schedule.
pub(super) struct Shop {
    plan: Plan,
    tree: OnceLock<Weak<Inner>>,
    done: Mutex<HashMap<ThreadId, usize>>,
    sessions: Mutex<HashMap<String, Sessions>>,
    /// Agents whose processes run.
    pub(super) pinned: Mutex<HashSet<String>>,
}

#[derive(Clone, Copy, Default)]
struct Sessions {
    now: usize,
    ever: usize,
}

/// The hands of one session; a second pair of one agent would be a second session.
struct Held {
    shop: Arc<Shop>,
    thread: ThreadId,
    path: String,
}

/// All that an agent can do.
struct Act {
    shop: Arc<Shop>,
    thread: ThreadId,
    path: String,
}

/// The shop as a tree sees it.
struct Counter(Arc<Shop>);

impl Workshop for Counter {
    fn hands(&self, agent: &AgentFacts) -> Arc<dyn Hands> {
        let path = agent.agent.path.to_string();
        let mut all = self.0.sessions.lock().unwrap();
        let sessions = all.entry(path.clone()).or_default();
        assert_eq!(sessions.now, 0, "{path} has a session already");
        *sessions = Sessions { now: 1, ever: sessions.ever + 1 };
        Arc::new(Held { shop: Arc::clone(&self.0), thread: agent.agent.thread, path })
    }

    fn sweep(&self, _: Vec<ProcessRecord>) -> BoxFuture<'_, Vec<Swept>> {
        Box::pin(async { Vec::new() })
    }

    fn end_all(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.0.pinned.lock().unwrap().clear() })
    }
}

impl Hands for Held {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(Act { shop: Arc::clone(&self.shop), thread: self.thread, path: self.path.clone() })]
    }

    fn running(&self) -> Vec<Running> {
        let pinned = self.shop.pinned.lock().unwrap().contains(&self.path);
        (0..usize::from(pinned)).map(|_| Running { token: Token::new(), pid: 1, command: "sleep".to_owned() }).collect()
    }

    fn end_processes(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.shop.pinned.lock().unwrap().remove(&self.path);
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(sessions) = self.shop.sessions.lock().unwrap().get_mut(&self.path) {
            sessions.now -= 1;
        }
    }
}

impl Act {
    fn next(&self) -> Option<Deed> {
        let done = self.shop.done.lock().unwrap().get(&self.thread).copied().unwrap_or(0);
        (self.shop.plan)(&self.path).get(done).copied()
    }
}

impl Tool for Act {
    #[expect(clippy::unnecessary_literal_bound, reason = "the trait's signature")]
    fn name(&self) -> &str {
        "act"
    }

    fn spec(&self) -> ToolSpec {
        let input = ToolInput::Function { parameters: serde_json::json!({}) };
        ToolSpec { name: "act".to_owned(), description: String::new(), input }
    }

    /// Whether there is anything left to do.
    fn parallel(&self) -> bool {
        self.next().is_some()
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let tree = self.shop.tree.get().and_then(Weak::upgrade).map(Tree);
            let (Some(deed), Some(tree)) = (self.next(), tree) else { return Err(ToolError::respond("nothing")) };
            *self.shop.done.lock().unwrap().entry(self.thread).or_default() += 1;
            let node = tree.node(self.thread).unwrap();
            match deed {
                Deed::Spawn(name) | Deed::Due(name) => {
                    let far = || stdx::now().after(Duration::from_hours(24));
                    let wanted = Wanted {
                        name: AgentName::new(name).unwrap(),
                        task: "work".to_owned(),
                        role: None,
                        model: None,
                        effort: None,
                        turns: Turns::None,
                        deadline: matches!(deed, Deed::Due(_)).then(far),
                    };
                    // In a task of its own, as the tool does. Refused when somebody above has been closed meanwhile.
                    let tracker = tree.0.tracker.clone();
                    let spawning = tracker.spawn(async move { tree.spawn(&node, wanted, &invocation).await.is_ok() });
                    let _refused = spawning.await;
                }
                Deed::Wait => wait(&tree, &node, &invocation).await,
            }
            Ok(ToolOutput::ok("done"))
        })
    }
}

/// As the tool of that name, which has clocks besides.
async fn wait(tree: &Tree, node: &Arc<Node>, invocation: &Invocation) {
    let keeper = Keeper { tree: tree.clone(), node: Arc::clone(node) };
    let (mut arrivals, mut changes) = (node.inbox.arrivals(), tree.0.changes.subscribe());
    {
        let mut facts = node.facts();
        facts.waits += 1;
        facts.awaits.push((1, Vec::new()));
    }
    keeper.status(protocol::Status::Waiting, Some(protocol::WaitingOn::Agent));
    let gave_back = keeper.give_back();
    let interrupted = loop {
        arrivals.borrow_and_update();
        changes.borrow_and_update();
        let awaited = |other: &Arc<Node>| {
            let busy = tree.moves(other, node.meta.id);
            let stalled = tree.hears_of_stall(node, other, false);
            let status = other.facts().status;
            Awaited { thread: other.meta.id, busy, status, stalled }
        };
        let awaited: Vec<Awaited> = tree.others(node).iter().map(awaited).collect();
        if verdict(&node.pending(), &awaited, true) != Verdict::Wait {
            break false;
        }
        tokio::select! {
            biased;
            () = invocation.cancel.cancelled() => break true,
            _ = arrivals.changed() => {}
            _ = changes.changed() => {}
        }
    };
    {
        let mut facts = node.facts();
        facts.waits -= 1;
        facts.awaits.clear();
    }
    if gave_back && !interrupted {
        keeper.take_back().await;
    }
}

pub(super) struct Scene {
    pub(super) tree: Tree,
    pub(super) shop: Arc<Shop>,
    store: Store,
    max_resident: usize,
}

/// Made once: what they are is the same in every schedule.
fn catalog() -> Arc<model::Catalog> {
    static CATALOG: OnceLock<Arc<model::Catalog>> = OnceLock::new();
    let new = || {
        let http = http::Http::new(http::Proxies::default());
        Arc::new(model::Catalog::new([], http, BTreeMap::new(), AbsPath::new("/").unwrap()))
    };
    Arc::clone(CATALOG.get_or_init(new))
}

impl Scene {
    /// A tree whose root has its first task and is not woken.
    pub(super) async fn new(plan: Plan, most: (usize, usize)) -> (Self, Pending) {
        Self::within(Budgets::default(), plan, most).await
    }

    /// As [`Scene::new`], with a budget.
    pub(super) async fn within(
        budgets: Budgets,
        plan: Plan,
        (max_running, max_resident): (usize, usize),
    ) -> (Self, Pending) {
        let store = Store::default();
        let shop = Arc::new(Shop {
            plan,
            tree: OnceLock::new(),
            done: Mutex::default(),
            sessions: Mutex::default(),
            pinned: Mutex::default(),
        });
        let options = Options {
            store: store.clone(),
            mirror: Mirror,
            catalog: catalog(),
            workshop: Arc::new(Counter(Arc::clone(&shop))),
            roles: roles::Roles::builtin(),
            owner: OwnerHint { pid: 1, start_time: 1, socket: None },
            alive: |_| false,
            limits: Limits { max_running, max_resident, max_depth: 4, max_agents: 100, roles: Vec::new(), budgets },
            prices: BTreeMap::new(),
            sandbox: Sandbox::ReadOnly,
            approval: Approval::Never,
            model: Some("rehearsal".to_owned()),
            effort: None,
            cwd: AbsPath::new("/").unwrap(),
            shell: "sh".to_owned(),
            version: "0".to_owned(),
            retry: model::RetryLimits::default(),
            stall_after: None,
        };
        let (tree, pending) = Tree::create(options, "go").await.unwrap();
        shop.tree.set(Arc::downgrade(&tree.0)).unwrap();
        (Self { tree, shop, store, max_resident }, pending)
    }

    /// How often an agent was loaded.
    pub(super) fn loads(&self, path: &str) -> usize {
        self.shop.sessions.lock().unwrap().get(path).map_or(0, |sessions| sessions.ever)
    }

    fn residents(&self) -> usize {
        self.tree.nodes().iter().filter(|node| node.facts().resident).count()
    }

    /// Waits until nobody works and nobody is resident beyond the limit, and checks that nobody was forgotten.
    pub(super) async fn calm(&self) {
        let mut changes = self.tree.0.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if !self.tree.is_busy() && self.residents() <= self.max_resident {
                break;
            }
            changes.changed().await.unwrap();
        }
        assert_eq!(self.tree.0.slots.in_use(), (0, 0));
        let pinned = self.shop.pinned.lock().unwrap().clone();
        for node in self.tree.nodes() {
            let resident = matches!(&*node.life.lock().await, Life::Resident { .. });
            assert_eq!(resident, node.facts().resident, "{}", node.address.path);
            assert!(resident || !pinned.contains(node.address.path.as_str()), "its processes run");
            let sessions = self.shop.sessions.lock().unwrap();
            let now = sessions.get(node.address.path.as_str()).map_or(0, |sessions| sessions.now);
            assert_eq!(now, usize::from(resident), "{}", node.address.path);
        }
    }

    /// Nobody has mail that wakes and does not wake: for scenes in which nobody interrupts.
    pub(super) fn nobody_sleeps_over_mail(&self) {
        for node in self.tree.reachable() {
            assert!(!node.inbox.lock().wakes(), "{}", node.address.path);
        }
    }

    /// Whoever is at or below a closed path has neither session nor mail.
    pub(super) fn ended_below(&self, closed: &str) {
        for node in self.tree.nodes().iter().filter(|node| node.address.path.as_str().starts_with(closed)) {
            assert!(!node.facts().resident, "{}", node.address.path);
            assert_eq!(node.pending(), [], "{}", node.address.path);
        }
    }

    /// Ends the tree, and checks every file. `closed` names those whose edges were closed; no other may be.
    pub(super) async fn finish(self, closed: &[&str]) {
        self.calm().await;
        let waits: HashMap<ThreadId, Vec<MailId>> =
            self.tree.nodes().iter().map(|node| (node.meta.id, ids(node))).collect();
        self.tree.shut_down().await;
        assert!(!self.tree.is_busy());
        assert_eq!(self.tree.0.slots.in_use(), (0, 0));
        assert!(self.shop.sessions.lock().unwrap().values().all(|sessions| sessions.now == 0), "no session is left");
        let mut given: HashMap<MailId, i32> = HashMap::new();
        let mut spent = 0;
        for file in self.store.all() {
            let state = file.state();
            let path = &state.meta.agent_path;
            let delivered = file.delivered();
            let once: HashSet<MailId> = delivered.iter().copied().collect();
            assert_eq!(once.len(), delivered.len(), "{path}: no mail twice");
            let pending: Vec<MailId> = state.pending.iter().map(|mail| mail.id).collect();
            assert_eq!(pending, waits[&state.meta.id], "{path}: memory is what the file says");
            assert!(state.open_turn.is_none(), "{path}: every turn has ended");
            assert_eq!(state.obligations, [], "{path}: every debt is paid");
            assert!(state.unsettled.is_empty(), "{path}: every request has its bill");
            spent += state.spent().total();
            assert_eq!(state.edge == Edge::Open, !closed.contains(&path.as_str()), "{path}: only closing closes");
            for record in file.records() {
                match record {
                    Record::Mail(mail) if mail.kind.is_task() => *given.entry(mail.id).or_default() += 1,
                    Record::TaskDone(done) => {
                        // Beside a task whose deadline passed another may be cut off; the tree did not end.
                        let beside = done.end.reason.as_deref().is_some_and(|reason| reason.contains("deadline"));
                        assert!(!done.goes_on || beside, "{path}: nothing was cut off by the end of the tree");
                        *given.entry(done.task).or_default() -= 1;
                    }
                    _ => {}
                }
            }
            for mail in state.pending.iter().filter(|mail| mail.kind.is_task()) {
                *given.entry(mail.id).or_default() -= 1;
            }
        }
        let pot = self.tree.accounts().below(self.tree.0.id.root()).unwrap();
        assert_eq!((pot.spent.tokens, pot.reserved.tokens), (spent, 0), "the accounts are what the files say");
        assert!(given.values().all(|open| *open == 0), "each task is pending or ended once: {given:?}");
    }
}

fn ids(node: &Node) -> Vec<MailId> {
    node.inbox.lock().pending().map(|mail| mail.id).collect()
}

/// The path of an agent.
pub(super) fn path(text: &str) -> AgentPath {
    text.parse().unwrap()
}
