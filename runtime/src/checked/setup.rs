//! What an agent under the checker is made of.

use std::sync::Arc;

use model::{BoxStream, Head, Model, ModelError, ModelEvent, ModelRequest, RetryLimits, ToolWire};
use protocol::{Address, AgentPath, Approval, Mail, MailId, MailKind, Party, RequestId, Sandbox, ThreadId, TreeId};
use rollout::SessionMeta;
use stdx::AbsPath;

use super::core::Setup;
use super::disk::{Store, Writer};
use super::{Host, Inbox};

/// A model that nobody asks: samples are played.
struct Silent;

impl Model for Silent {
    #[expect(clippy::unnecessary_literal_bound, reason = "the trait's signature")]
    fn id(&self) -> &str {
        "silent"
    }

    fn head(&self, _: &[ToolWire]) -> Arc<Head> {
        Arc::new(Head { tools: "[]".into(), names: Vec::new() })
    }

    fn stream(&self, _: ModelRequest) -> BoxStream<Result<ModelEvent, ModelError>> {
        Box::pin(futures::stream::empty())
    }
}

/// The first line of a root.
pub(crate) fn meta(agent: &Address) -> SessionMeta {
    SessionMeta {
        id: agent.thread,
        session_id: TreeId::from(agent.thread),
        timestamp: stdx::now(),
        parent_thread_id: None,
        agent_path: agent.path.clone(),
        incarnation: 1,
        agent_role: "default".to_owned(),
        depth: agent.path.depth(),
        agent_nickname: None,
        spawned_by: None,
        cwd: AbsPath::new("/").unwrap(),
        model: "silent".to_owned(),
        effort: None,
        sandbox: Sandbox::ReadOnly,
        approval: Approval::Never,
        originator: "agent".to_owned(),
        cli_version: "0".to_owned(),
        format: 1,
    }
}

/// All of an agent.
pub(crate) fn setup(agent: &Address, store: &Store, writer: Writer, inbox: Arc<Inbox>, host: Arc<dyn Host>) -> Setup {
    Setup {
        tree: TreeId::from(agent.thread),
        agent: agent.clone(),
        role: "default".to_owned(),
        cwd: AbsPath::new("/").unwrap(),
        sandbox: Sandbox::ReadOnly,
        approval: Approval::Never,
        head: Silent.head(&[]),
        model: Arc::new(Silent),
        effort: None,
        tools_digest: String::new(),
        tools: Vec::new(),
        writer,
        store: store.clone(),
        inbox,
        host,
        retry: RetryLimits::default(),
        preamble: Vec::new(),
    }
}

/// The root of a tree.
pub(crate) fn root() -> Address {
    Address { path: AgentPath::root(), thread: ThreadId::new() }
}

/// A mail of a client, without a sequence yet.
pub(crate) fn mail(to: &Address, kind: MailKind, wakes: bool) -> Mail {
    Mail {
        id: MailId::new(),
        tree: TreeId::from(to.thread),
        from: Party::Client { client: RequestId::new() },
        to: to.clone(),
        kind,
        trigger_turn: wakes,
        sequence: 0,
        body: "words".to_owned(),
        whole: None,
        answers: None,
        outcome: None,
        continues: None,
        deadline: None,
    }
}
