//! What several tests build: a home with rollouts in it, and looks at its database from outside.

use std::sync::Arc;

use protocol::{Address, AgentPath, Approval, Mail, MailKind, Party, Role, Sandbox, ThreadId, TreeId, TurnId};
use rollout::{
    EdgeRecord, EdgeStatus, EventRecord, ItemRecord, RealDisk, Record, SessionMeta, Store, Summary, TurnEnd, Writer,
};
use rusqlite::Connection;
use stdx::{AbsPath, Timestamp};

use crate::{Catalogue, Mirror, Trouble};

/// The n-th id of any kind.
pub(crate) fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(n: u64) -> T {
    format!("01939d5e-0000-7000-8000-{n:012x}").parse().unwrap()
}

/// A folder of its own for each test.
pub(crate) struct Home {
    pub(crate) store: Store,
    _folder: Option<tempfile::TempDir>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = AbsPath::new(folder.path().join("home")).unwrap();
        std::fs::create_dir(&home).unwrap();
        Self { store: Store::new(home, Arc::new(RealDisk)), _folder: Some(folder) }
    }

    /// A home that another process made.
    pub(crate) fn at(home: AbsPath) -> Self {
        Self { store: Store::new(home, Arc::new(RealDisk)), _folder: None }
    }

    pub(crate) fn path(&self) -> &AbsPath {
        self.store.home()
    }

    pub(crate) fn database(&self) -> AbsPath {
        self.path().join("state.sqlite")
    }

    /// The mirror of a home where nothing is wrong.
    pub(crate) fn mirror(&self) -> Mirror {
        let (mirror, trouble) = self.open();
        assert_eq!(trouble, None);
        mirror
    }

    pub(crate) fn open(&self) -> (Mirror, Option<Trouble>) {
        Mirror::open(self.path())
    }

    /// A look at the database by somebody else.
    pub(crate) fn sql(&self) -> Connection {
        Connection::open(self.database()).unwrap()
    }

    pub(crate) fn count(&self, query: &str) -> u64 {
        self.sql().query_row(query, [], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned()
    }

    /// Names in the home, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Agent `n` of tree `tree`: its root when both are the same.
    pub(crate) async fn agent(&self, tree: u64, n: u64) -> Writer {
        let meta = meta(tree, n);
        let (to, giver) = (Address { path: meta.agent_path.clone(), thread: meta.id }, id(n));
        let edge = EdgeRecord { status: EdgeStatus::Open, reason: "spawned".to_owned(), by: "user".to_owned() };
        let mail = mail(n, to, Party::Client { client: giver });
        self.store.create(meta, vec![Record::Edge(edge), Record::Mail(Box::new(mail))]).await.unwrap()
    }

    /// Agents of one tree, `tree` and those after it.
    pub(crate) async fn tree(&self, tree: u64, agents: u64) -> Vec<Writer> {
        let mut writers = Vec::new();
        for n in tree..tree + agents {
            writers.push(self.agent(tree, n).await);
        }
        writers
    }

    pub(crate) fn catalogue(&self, mirror: &Mirror) -> Catalogue {
        let catalogue = mirror.catalogue(&self.store, None).unwrap();
        assert_eq!(catalogue.problems, []);
        // Whatever the mirror says, this is what must come out.
        assert_eq!(summaries(&catalogue), self.truth());
        assert_eq!(catalogue.agents.len(), catalogue.from_index + catalogue.read);
        assert_eq!(catalogue.agents.iter().filter(|known| known.trusted).count(), catalogue.from_index);
        catalogue
    }

    /// All agents, read from their files.
    pub(crate) fn truth(&self) -> Vec<Summary> {
        // By somebody who knows of no place from before.
        let store = Store::new(self.path().clone(), Arc::new(RealDisk));
        let heads = store.scan().unwrap().heads;
        heads.iter().filter_map(|head| Some(store.load(head.meta.id).ok()?.summary())).collect()
    }
}

pub(crate) fn summaries(catalogue: &Catalogue) -> Vec<Summary> {
    catalogue.agents.iter().map(|known| known.summary.clone()).collect()
}

/// How many were taken from rows, and how many read.
pub(crate) fn split(catalogue: &Catalogue) -> (usize, usize) {
    (catalogue.from_index, catalogue.read)
}

pub(crate) fn meta(tree: u64, n: u64) -> SessionMeta {
    let root: ThreadId = id(tree);
    let is_root = tree == n;
    let path = if is_root { AgentPath::root() } else { format!("/root/agent_{n}").parse().unwrap() };
    SessionMeta {
        id: id(n),
        session_id: TreeId::from(root),
        timestamp: Timestamp::parse("2026-11-30T15:13:02.000Z").unwrap(),
        parent_thread_id: (!is_root).then_some(root),
        agent_path: path,
        incarnation: 1,
        agent_role: "default".to_owned(),
        depth: usize::from(!is_root),
        agent_nickname: None,
        spawned_by: (!is_root).then(|| rollout::SpawnedBy { effect: id(n), ordinal: n }),
        cwd: AbsPath::new("/tmp/project").unwrap(),
        model: "test/one".to_owned(),
        effort: None,
        sandbox: Sandbox::WorkspaceWrite,
        approval: Approval::Never,
        originator: "agent".to_owned(),
        cli_version: "0.1.0".to_owned(),
        format: 1,
    }
}

pub(crate) fn mail(n: u64, to: Address, from: Party) -> Mail {
    Mail {
        id: id(n),
        tree: TreeId::from(to.thread),
        from,
        to,
        kind: MailKind::Input,
        trigger_turn: true,
        sequence: n,
        body: format!("Task {n}:\nlook into it"),
        whole: None,
        answers: None,
        outcome: None,
        continues: None,
        deadline: None,
    }
}

pub(crate) fn words(text: &str) -> Record {
    let item = protocol::Item::message(Role::Assistant, text);
    Record::Item(ItemRecord { item, effect: None, mail: Vec::new(), turn: None, copied_from: None })
}

pub(crate) fn turn(n: u64) -> Record {
    Record::Event(EventRecord::TurnStarted { turn_id: id(n) })
}

pub(crate) fn turn_end(n: u64) -> Record {
    let turn_id: TurnId = id(n);
    let end = protocol::TaskEnd { outcome: protocol::Outcome::Completed, text: None, reason: None };
    Record::TurnEnd(TurnEnd { turn_id, end })
}

pub(crate) fn closed() -> Record {
    Record::Edge(EdgeRecord { status: EdgeStatus::Closed, reason: "enough".to_owned(), by: "/root".to_owned() })
}
