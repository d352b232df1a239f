//! How long a listing of a thousand agents takes: from rows, without a mirror, and after it was deleted.
//!
//! `cargo run --release -p mirror --example thousand`
#![expect(clippy::print_stdout, reason = "it is run to read what it prints")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mirror::Mirror;
use protocol::{Address, AgentPath, Approval, Item, Mail, MailId, MailKind, Party, Role, Sandbox, ThreadId, TreeId};
use rollout::{EdgeRecord, EdgeStatus, ItemRecord, RealDisk, Record, SessionMeta, Store};
use stdx::AbsPath;

/// Agents, in trees of this many each.
const AGENTS: usize = 1_000;
const TREE: usize = 50;
/// Items in each rollout, 1 KiB long.
const ITEMS: usize = 30;
/// The best of so many is printed: the machine does other things as well.
const TRIES: usize = 20;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let home = AbsPath::new(folder.path().join("home"))?;
    std::fs::create_dir(&home)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (mirror, trouble) = Mirror::open(&home);
    assert!(trouble.is_none(), "{trouble:?}");
    let fresh = || Store::new(home.clone(), Arc::new(RealDisk));

    let store = fresh();
    let words = Item::message(Role::Assistant, &"x".repeat(1_000));
    let item = ItemRecord { item: words, effect: None, mail: Vec::new(), turn: None, copied_from: None };
    let items = vec![Record::Item(item); ITEMS];
    let (mut appending, mut summing, mut noting) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut root = ThreadId::new();
    for n in 0..AGENTS {
        let thread = ThreadId::new();
        if n % TREE == 0 {
            root = thread;
        }
        let (meta, rest) = agent(thread, root, n)?;
        let writer = runtime.block_on(store.create(meta, rest))?;
        let begin = Instant::now();
        writer.append(&items)?;
        appending += begin.elapsed();
        let begin = Instant::now();
        let summary = writer.summary();
        summing += begin.elapsed();
        let begin = Instant::now();
        mirror.note(summary);
        noting += begin.elapsed();
    }
    let each = |time: Duration| time / u32::try_from(AGENTS).unwrap_or(1);
    println!("append of {ITEMS} items of 1 KiB, folded: {:?}", each(appending));
    println!("Writer::summary:                     {:?}", each(summing));
    println!("Mirror::note:                        {:?}", each(noting));
    runtime.block_on(mirror.flush())?;

    println!("\n{AGENTS} agents in trees of {TREE}:");
    best("files by name and length", || Ok(fresh().files().map(|files| files.files.len())?))?;
    best("rows", || Ok(mirror.rows(None)?.len()))?;
    best("catalogue of all, from rows", || {
        let catalogue = mirror.catalogue(&fresh(), None)?;
        assert_eq!((catalogue.from_index, catalogue.read), (AGENTS, 0));
        Ok(catalogue.agents.len())
    })?;
    best("catalogue of one tree, from rows", || {
        let catalogue = mirror.catalogue(&fresh(), Some(TreeId::from(root)))?;
        assert_eq!((catalogue.from_index, catalogue.read), (TREE, 0));
        Ok(catalogue.agents.len())
    })?;
    best("the same with Mirror::open and its end", || {
        let (mirror, _) = Mirror::open(&home);
        Ok(mirror.catalogue(&fresh(), None)?.agents.len())
    })?;
    best("catalogue of all, no mirror", || Ok(Mirror::off().catalogue(&fresh(), None)?.agents.len()))?;
    drop(mirror);
    best("catalogue of all, mirror deleted, made anew", || {
        std::fs::remove_file(home.join("state.sqlite"))?;
        let (mirror, _) = Mirror::open(&home);
        let read = mirror.catalogue(&fresh(), None)?.read;
        runtime.block_on(mirror.flush())?;
        Ok(read)
    })?;
    println!("state.sqlite: {} bytes", std::fs::metadata(home.join("state.sqlite"))?.len());
    Ok(())
}

fn best(what: &str, mut act: impl FnMut() -> Result<usize, Failure>) -> Result<(), Failure> {
    let mut shortest = Duration::MAX;
    let mut agents = 0;
    for _ in 0..TRIES {
        let begin = Instant::now();
        agents = act()?;
        shortest = shortest.min(begin.elapsed());
    }
    println!("{shortest:>12.2?}  {what} ({agents})");
    Ok(())
}

fn agent(thread: ThreadId, root: ThreadId, n: usize) -> Result<(SessionMeta, Vec<Record>), Failure> {
    let tree = TreeId::from(root);
    let is_root = thread == root;
    let path: AgentPath = if is_root { AgentPath::root() } else { format!("/root/agent_{n}").parse()? };
    let mail = MailId::new();
    let giver = if is_root {
        Party::Client { client: protocol::RequestId::new() }
    } else {
        Party::Agent(Address { path: AgentPath::root(), thread: root })
    };
    let spawn = Mail {
        id: mail,
        tree,
        from: giver,
        to: Address { path: path.clone(), thread },
        kind: MailKind::Spawn,
        trigger_turn: true,
        sequence: 1,
        body: format!("Look into part {n} of the project and say what you find. {}", "Be thorough. ".repeat(20)),
        whole: None,
        answers: None,
        outcome: None,
        continues: None,
        deadline: None,
    };
    let meta = SessionMeta {
        id: thread,
        session_id: tree,
        timestamp: stdx::now(),
        parent_thread_id: (!is_root).then_some(root),
        agent_path: path,
        incarnation: 1,
        agent_role: "explorer".to_owned(),
        depth: usize::from(!is_root),
        agent_nickname: None,
        spawned_by: None,
        cwd: AbsPath::new("/srv/project")?,
        model: "local/model".to_owned(),
        effort: None,
        sandbox: Sandbox::WorkspaceWrite,
        approval: Approval::Never,
        originator: "agent".to_owned(),
        cli_version: "0.1.0".to_owned(),
        format: 1,
    };
    let edge = EdgeRecord { status: EdgeStatus::Open, reason: "spawned".to_owned(), by: "user".to_owned() };
    Ok((meta, vec![Record::Edge(edge), Record::Mail(Box::new(spawn))]))
}
