//! Homes that no run has made: long sessions and large trees, written with the crate that writes real ones.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use protocol::{
    Address, AgentName, AgentPath, Approval, EffectId, Item, Mail, MailKind, Outcome, Party, RequestId, Role, Sandbox,
    TaskEnd, ThreadId, TreeId, TurnId,
};
use rollout::{
    EdgeRecord, EdgeStatus, EventRecord, ItemRecord, RealDisk, Record, SessionMeta, SpawnedBy, Store, TaskDone,
    TurnEnd, Writer,
};
use stdx::AbsPath;
use tokio::task::JoinSet;

/// Bytes of one output in a session of so many items: what a short command prints.
const SHORT: usize = 150;
/// Bytes of one output in a session of so many megabytes: what a model is given at the most of a long one.
const LONG: usize = 10_000;
/// Million bytes between two compactions of an agent that has lived long.
const STRETCH: usize = 20;
/// Bytes of the history that a compaction leaves: a summary and the user's own words.
const KEPT: usize = 40_000;
/// Children of each agent in a large tree.
const BREADTH: usize = 10;
/// Calls between two syncs, so that what waits for one stays small.
const CALLS_PER_SYNC: usize = 500;

/// The rollouts of a home.
pub(super) fn store(home: &Path) -> Result<Store> {
    Ok(Store::new(AbsPath::new(home)?, Arc::new(RealDisk)))
}

/// An agent that does not exist yet.
#[derive(Clone)]
pub(super) struct Agent {
    pub(super) address: Address,
    pub(super) tree: TreeId,
    parent: Option<Address>,
    place: u64,
    work: AbsPath,
}

impl Agent {
    pub(super) fn root(work: &Path) -> Result<Self> {
        let thread = ThreadId::new();
        let address = Address { path: AgentPath::root(), thread };
        Ok(Self { address, tree: TreeId::from(thread), parent: None, place: 0, work: AbsPath::new(work)? })
    }

    pub(super) fn child(&self, place: usize) -> Result<Self> {
        let path = self.address.path.join(&AgentName::new(&format!("w{place}"))?)?;
        Ok(Self {
            address: Address { path, thread: ThreadId::new() },
            parent: Some(self.address.clone()),
            place: place as u64,
            ..self.clone()
        })
    }

    fn giver(&self) -> Party {
        match &self.parent {
            Some(parent) => Party::Agent(parent.clone()),
            None => Party::Client { client: RequestId::new() },
        }
    }

    /// Mail to this agent. Its sequence is for the sender to count.
    pub(super) fn mail(&self, from: Party, kind: MailKind, body: &str) -> Mail {
        Mail {
            id: RequestId::new().mail(),
            tree: self.tree,
            from,
            to: self.address.clone(),
            kind,
            trigger_turn: kind.is_task(),
            sequence: 1,
            body: body.to_owned(),
            whole: None,
            answers: None,
            outcome: None,
            continues: None,
            deadline: None,
        }
    }

    /// Makes its file, with the first task.
    pub(super) async fn create(&self, store: &Store, task: &Mail) -> Result<Writer> {
        let meta = SessionMeta {
            id: self.address.thread,
            session_id: self.tree,
            timestamp: stdx::now(),
            parent_thread_id: self.parent.as_ref().map(|parent| parent.thread),
            agent_path: self.address.path.clone(),
            incarnation: 1,
            agent_role: "default".to_owned(),
            depth: self.address.path.depth(),
            agent_nickname: None,
            spawned_by: self.parent.as_ref().map(|_| SpawnedBy { effect: EffectId::new(), ordinal: self.place + 1 }),
            cwd: self.work.clone(),
            model: "rehearsal".to_owned(),
            effort: None,
            sandbox: Sandbox::DangerFullAccess,
            approval: Approval::Never,
            originator: "bench".to_owned(),
            cli_version: env!("CARGO_PKG_VERSION").to_owned(),
            format: 1,
        };
        let open = EdgeRecord { status: EdgeStatus::Open, reason: "generated".to_owned(), by: "user".to_owned() };
        Ok(store.create(meta, vec![Record::Edge(open), Record::Mail(Box::new(task.clone()))]).await?)
    }
}

fn item(turn: TurnId, item: Item, effect: Option<EffectId>) -> Record {
    Record::Item(ItemRecord { item, effect, mail: Vec::new(), turn: Some(turn), copied_from: None })
}

/// An agent with one finished task, in which it made so many calls, each with an output of so many bytes.
async fn session(store: &Store, agent: &Agent, calls: usize, bytes: usize) -> Result<()> {
    let kind = if agent.parent.is_some() { MailKind::Spawn } else { MailKind::Input };
    let task = agent.mail(agent.giver(), kind, "go");
    let writer = agent.create(store, &task).await?;
    work(&writer, &task, calls, bytes).await
}

/// A task from its turn's beginning to its end.
async fn work(writer: &Writer, task: &Mail, calls: usize, bytes: usize) -> Result<()> {
    let turn = TurnId::new();
    writer.append(&[Record::Event(EventRecord::TurnStarted { turn_id: turn })])?;
    let taken = ItemRecord {
        item: Item::message(Role::User, "go"),
        effect: None,
        mail: vec![task.id],
        turn: Some(turn),
        copied_from: None,
    };
    writer.append(&[Record::Item(taken)])?;
    let output = "a line of what a command has printed, some words long\n".repeat(bytes / 54 + 1);
    for n in 0..calls {
        let effect = Some(EffectId::new());
        let call = Item::function_call(&format!("call_{n}"), "exec_command", r#"{"cmd":"make check"}"#);
        let made = call.call();
        writer.append(&[item(turn, call, effect)])?;
        if let Some(made) = made {
            writer.append(&[item(turn, Item::output(&made, &output[..bytes]), effect)])?;
        }
        if n % CALLS_PER_SYNC == CALLS_PER_SYNC - 1 {
            writer.sync().await?;
        }
    }
    let end = TaskEnd { outcome: Outcome::Completed, text: Some("done".to_owned()), reason: None };
    writer.append(&[item(turn, Item::message(Role::Assistant, "done"), None)])?;
    let done = TaskDone { task: task.id, giver: task.from.clone(), end: end.clone(), continues: None, goes_on: false };
    writer.append_synced(&[Record::TurnEnd(TurnEnd { turn_id: turn, end }), Record::TaskDone(done)]).await?;
    Ok(())
}

/// A root whose calls and outputs are `items` items.
pub(super) async fn items(home: &Path, work: &Path, items: usize) -> Result<()> {
    session(&store(home)?, &Agent::root(work)?, items.div_ceil(2), SHORT).await
}

/// A root whose rollout has `megabytes` million bytes, within a percent or so.
pub(super) async fn megabytes(home: &Path, work: &Path, megabytes: usize) -> Result<()> {
    session(&store(home)?, &Agent::root(work)?, calls(megabytes), LONG).await
}

/// As many calls with long outputs as fill so many million bytes.
fn calls(megabytes: usize) -> usize {
    // A call with its envelope is about 340 bytes, the envelope of its output about 260.
    megabytes * 1_000_000 / (LONG + LONG / 54 + 600)
}

/// The same, of an agent that has lived long: a task each 20 million bytes, and a compaction before the next one. The last
/// stretch is as long as any, and nothing follows it.
pub(super) async fn lives(home: &Path, folder: &Path, megabytes: usize) -> Result<()> {
    let agent = Agent::root(folder)?;
    let first = agent.mail(agent.giver(), MailKind::Input, "go");
    let writer = agent.create(&store(home)?, &first).await?;
    work(&writer, &first, calls(STRETCH.min(megabytes)), LONG).await?;
    for n in 1..megabytes / STRETCH {
        let kept = "what is kept of a conversation, a few words a line\n".repeat(KEPT / 51);
        writer.compact("shorter".to_owned(), vec![Item::message(Role::User, &kept)])?;
        let task = Mail { sequence: n as u64 + 1, ..agent.mail(agent.giver(), MailKind::Input, "go") };
        writer.append_synced(&[Record::Mail(Box::new(task.clone()))]).await?;
        work(&writer, &task, calls(STRETCH), LONG).await?;
    }
    Ok(())
}

/// A tree of `agents`, filled level by level, each agent with ten children and one finished task.
pub(super) async fn agents(home: &Path, work: &Path, agents: usize) -> Result<()> {
    let store = store(home)?;
    let mut all = vec![Agent::root(work)?];
    for n in 1..agents {
        let child = all[(n - 1) / BREADTH].child(n)?;
        all.push(child);
    }
    let mut making = JoinSet::new();
    for agent in all {
        let store = store.clone();
        making.spawn(async move { session(&store, &agent, 1, SHORT).await });
    }
    while let Some(made) = making.join_next().await {
        made??;
    }
    Ok(())
}
