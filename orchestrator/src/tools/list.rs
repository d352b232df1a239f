//! `list_agents`.

use futures::future::BoxFuture;
use protocol::Waits;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tool_api::{Invocation, Tool, ToolError, ToolOutput, ToolSpec};

use super::Me;
use super::args::function;
use crate::node::Node;
use crate::tree::Tree;

pub(super) const NAME: &str = "list_agents";

/// Agents listed at most; a tree can have thousands and an output is bounded.
const MAX_LISTED: usize = 100;

pub(super) struct ListAgents(pub(super) Me);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Only agents at or below this path; a name below you, or a path such as `/root/worker_a`.
    #[serde(default)]
    path_prefix: Option<String>,
}

impl Tool for ListAgents {
    fn name(&self) -> &str {
        NAME
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Lists every open agent of the tree, working or asleep: path, role, status, what it waits \
                          for, unread mail, tokens, last activity."
                .to_owned(),
            input: function::<Args>(),
        }
    }

    fn parallel(&self) -> bool {
        true
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = tool_api::parse(&invocation.call)?;
            let me = &self.0;
            let prefix = match args.path_prefix.as_deref().map(str::trim).filter(|prefix| !prefix.is_empty()) {
                Some(prefix) => {
                    let path = me.node.address.path.resolve(prefix);
                    path.map_err(|error| ToolError::respond(error.to_string()))?
                }
                None => protocol::AgentPath::root(),
            };
            let mut agents: Vec<Value> = Vec::new();
            let mut more = 0;
            for node in me.tree.reachable() {
                if !node.address.path.is_at_or_below(&prefix) {
                    continue;
                }
                if agents.len() < MAX_LISTED {
                    agents.push(row(&me.tree, &node));
                } else {
                    more += 1;
                }
            }
            let mut answer = Map::new();
            answer.insert("agents".to_owned(), agents.into());
            if more > 0 {
                let note = format!("{more} more; narrow the list with path_prefix");
                answer.insert("note".to_owned(), note.into());
            }
            Ok(ToolOutput::ok(Value::from(answer).to_string()))
        })
    }
}

fn row(tree: &Tree, node: &Node) -> Value {
    let facts = node.facts().clone();
    let unread = node.inbox.lock().unread().total();
    let mut row = json!({
        "agent_name": node.address.path,
        "agent_status": facts.status,
        "role": node.meta.agent_role,
        "nickname": node.meta.agent_nickname,
        "unread": unread,
        "tokens": facts.usage.total(),
        "resident": facts.resident,
        "last_activity": facts.last_activity,
    });
    if let Some(row) = row.as_object_mut() {
        if let Some(on) = facts.waiting_on {
            row.insert("waiting_on".to_owned(), json!(on));
        }
        details(tree, node, row);
    }
    row
}

/// What an agent waits for, where it queues, and for how long nothing has come of it, as far as there is anything to
/// say.
pub(super) fn details(tree: &Tree, node: &Node, row: &mut Map<String, Value>) {
    if let Some(position) = tree.0.slots.position(node.meta.id) {
        row.insert("queue_position".to_owned(), position.into());
    } else if let Some(waits) = tree.waits(node).filter(|waits| *waits != Waits::Model) {
        row.insert("waits_for".to_owned(), waits.to_string().into());
    }
    let stalled = node.facts().watch.stalled(Instant::now());
    if let Some(stalled) = stalled {
        row.insert("stalled_ms".to_owned(), json!(stalled.as_millis()));
    }
}
