//! Spawning: one write that makes a child with its first task, or nothing.

use std::sync::Arc;

use agent_graph::Edge;
use protocol::{AgentName, AgentPath, EventKind, Mail, MailKind, Sandbox};
use roles::{Role, Workspace};
use rollout::{EdgeRecord, EdgeStatus, Record, SessionMeta, SpawnedBy};
use stdx::{Timestamp, one_line};
use tool_api::Invocation;

use super::TreeError;
use super::deadline::earlier;
use super::fork::{Turns, forked};
use super::node::Node;
use super::post::whole_body;
use super::tree::Tree;

/// Characters of a task shown to people.
const TASK_LINE: usize = 120;

/// What a child is asked for with.
pub(crate) struct Wanted {
    pub(crate) name: AgentName,
    pub(crate) task: String,
    pub(crate) role: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) turns: Turns,
    pub(crate) deadline: Option<Timestamp>,
}

impl Tree {
    /// Spawns a child of `parent` for one of its calls. The call is on disk before the child is.
    ///
    /// # Errors
    /// When a limit, the role, the model or the disk refuses; then there is no child and its path is free.
    pub(crate) async fn spawn(
        &self,
        parent: &Arc<Node>,
        wanted: Wanted,
        invocation: &Invocation,
    ) -> Result<Arc<Node>, TreeError> {
        let options = &self.0.options;
        let role = match &wanted.role {
            Some(name) => options.roles.get(name)?,
            None => options.roles.unnamed().ok_or(TreeError::NoRoles)?,
        };
        let thread = invocation.effect.thread();
        let id = invocation.effect.mail();
        let above = self.granted(&parent.meta)?;
        let granted = roles::narrow(&above, role)?;
        enforceable(role)?;
        let reserved = self.reserve(parent, &wanted.name, above.max_depth)?;
        let meta = SessionMeta {
            id: thread,
            session_id: self.0.id,
            timestamp: stdx::now(),
            parent_thread_id: Some(parent.meta.id),
            agent_path: reserved.path.clone(),
            incarnation: reserved.incarnation,
            agent_role: role.name.clone(),
            depth: reserved.path.depth(),
            agent_nickname: Some(self.nickname(role, thread)),
            spawned_by: Some(SpawnedBy { effect: invocation.effect, ordinal: invocation.ordinal }),
            cwd: parent.meta.cwd.clone(),
            model: role.model.clone().or(wanted.model).unwrap_or_else(|| parent.meta.model.clone()),
            effort: role.effort.clone().or(wanted.effort).or_else(|| parent.meta.effort.clone()),
            sandbox: granted.sandbox,
            approval: parent.meta.approval,
            originator: parent.meta.originator.clone(),
            cli_version: options.version.clone(),
            format: 1,
        };
        self.model(&self.model_of(&meta))?;
        self.priced(&self.model_of(&meta), granted.budget_usd)?;
        // Before the sync, which covers what a fork refers to as well.
        let forked = forked(self, parent, &meta, wanted.turns)?;
        // One sync covers all calls of the reply: no child may stand on disk whose call does not.
        options.store.writer(parent.meta.id)?.sync().await?;
        let (body, whole) = whole_body(&options.store, self.0.id, id, &wanted.task)?;
        let mail = Mail {
            id,
            tree: self.0.id,
            from: parent.party(),
            to: protocol::Address { path: reserved.path.clone(), thread },
            kind: MailKind::Spawn,
            trigger_turn: true,
            sequence: 1,
            body,
            whole,
            answers: None,
            outcome: None,
            continues: None,
            deadline: earlier(wanted.deadline, parent.facts().tasks.bound()),
        };
        mailbox::check_new(mail.kind, &mail.from, &mail.to, &mail.body)?;
        let opened =
            EdgeRecord { status: EdgeStatus::Open, reason: "spawned".to_owned(), by: parent.address.path.to_string() };
        let mut rest = vec![Record::Edge(opened)];
        rest.extend(forked);
        rest.push(Record::Mail(Box::new(mail.clone())));
        options.store.create(meta.clone(), rest).await?;

        let task = one_line(&mail.body, TASK_LINE);
        let node = self.adopt(Node::fresh(meta, mail, parent.cancel.child_token()), invocation.ordinal)?;
        drop(reserved);
        self.0.bus.emit(
            &node.address,
            EventKind::AgentSpawned {
                parent: Some(parent.address.path.clone()),
                role: role.name.clone(),
                nickname: node.meta.agent_nickname.clone(),
                task,
            },
        );
        let above = self.family().graph.closed_by(node.meta.id).map(|closed| closed.edge.clone());
        match above {
            // Whoever closes somebody above it from now on finds it.
            None | Some(Edge::Open) => self.wake(&node).await,
            Some(Edge::Closed { reason }) => self.shut_late(&node, &reason).await,
        }
        // Also when it has ended already: it was made, and after a crash here the call is answered the same.
        Ok(node)
    }

    /// Takes a path, so that two spawns of one name cannot both have it while their files are being written.
    fn reserve(&self, parent: &Node, name: &AgentName, max_depth: usize) -> Result<Reserved<'_>, TreeError> {
        let limits = &self.0.options.limits;
        let mut family = self.family();
        let path = family.graph.can_spawn(parent.meta.id, name, max_depth, limits.max_agents)?;
        let spawned = family.graph.spawned_total() + family.reserved.len();
        if spawned >= limits.max_agents {
            return Err(agent_graph::GraphError::TooMany { spawned, max: limits.max_agents }.into());
        }
        if family.reserved.contains(&path) {
            return Err(agent_graph::GraphError::Taken { path, holder: parent.meta.id }.into());
        }
        let incarnation = family.graph.next_incarnation(&path);
        family.reserved.push(path.clone());
        Ok(Reserved { tree: self, path, incarnation })
    }

    fn nickname(&self, role: &Role, thread: protocol::ThreadId) -> String {
        let used: Vec<String> = self.nodes().iter().filter_map(|node| node.meta.agent_nickname.clone()).collect();
        let seed = (thread.uuid().as_u128() & u128::from(u64::MAX)) as u64;
        roles::nickname(&used, seed, &role.nicknames)
    }
}

/// What a role takes away has to be kept away; what cannot be enforced is refused, not claimed.
fn enforceable(role: &Role) -> Result<(), TreeError> {
    let sandbox = role.sandbox.filter(|sandbox| *sandbox != Sandbox::DangerFullAccess);
    let what = match (sandbox, role.workspace) {
        (Some(sandbox), ..) => format!("the sandbox `{}`", sandbox.as_str()),
        (None, Some(Workspace::Worktree)) => "a worktree of its own".to_owned(),
        (None, Some(Workspace::Shared) | None) => return Ok(()),
    };
    Err(TreeError::Unenforced { role: role.name.clone(), what })
}

struct Reserved<'a> {
    tree: &'a Tree,
    path: AgentPath,
    incarnation: u32,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.tree.family().reserved.retain(|path| *path != self.path);
    }
}
