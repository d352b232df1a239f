//! Watching for agents of whose work nothing comes, and saying what each agent waits for.

use std::sync::{Arc, Weak};
use std::time::Duration;

use protocol::{EventKind, Status, ThreadId, WaitingOn, Waits};
use tokio::time::{Instant, sleep_until};

use super::node::{Facts, Node};
use super::tree::{Inner, Tree};
use super::watch::Look;

impl Tree {
    /// Watches the agents for as long as the tree is driven, if anybody wants to hear of stalls.
    pub(crate) fn watch(&self) {
        let Some(after) = self.0.options.stall_after else { return };
        let (tree, cancel) = (Arc::downgrade(&self.0), self.0.cancel.clone());
        self.0.tracker.spawn(async move {
            // It does not keep the tree: one that nobody holds any more is not watched.
            while let Some(next) = look(&tree, after) {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = sleep_until(next) => {}
                }
            }
        });
    }

    /// Tells of every agent that has stalled since the last look. Says when to look again: before that no other agent
    /// can stall, because who begins to work now has all its time before it.
    pub(crate) fn look(&self, now: Instant, after: Duration) -> Instant {
        let mut next = now + after;
        let mut stalled = Vec::new();
        for node in self.nodes() {
            let look = node.facts().watch.look(now, after);
            match look {
                Look::Nothing => {}
                Look::Due(at) => next = next.min(at),
                Look::Stalls(quiet) => stalled.push((node, quiet)),
            }
        }
        for (node, quiet) in &stalled {
            let status = node.facts().status;
            let stalled_ms = u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX);
            self.0.bus.emit(&node.address, EventKind::AgentStalled { stalled_ms, status, waits: self.waits(node) });
        }
        if !stalled.is_empty() {
            // Whoever waits for one of them looks again.
            self.changed();
        }
        next
    }

    /// What an agent waits for now, in detail; nothing for one that rests.
    pub(crate) fn waits(&self, node: &Node) -> Option<Waits> {
        if let Some(position) = self.0.slots.position(node.meta.id) {
            return Some(Waits::Slot { position });
        }
        let facts = node.facts().clone();
        match (facts.status, facts.waiting_on) {
            (Status::Running, _) => Some(Waits::Model),
            (Status::Waiting, Some(WaitingOn::Agent)) => Some(Waits::Agents { paths: self.awaited(&facts) }),
            (Status::Waiting, on) => facts.detail.or(match on {
                Some(WaitingOn::Tool) => Some(Waits::Tool { calls: Vec::new() }),
                Some(WaitingOn::Model) => Some(Waits::Model),
                Some(WaitingOn::Budget) => Some(Waits::Budget),
                Some(WaitingOn::Agent | WaitingOn::Approval) | None => None,
            }),
            _ => None,
        }
    }

    /// Paths of those whom an agent's waits name; none when one of them takes whoever comes first.
    fn awaited(&self, facts: &Facts) -> Vec<protocol::AgentPath> {
        if facts.awaits.iter().any(|(_, named)| named.is_empty()) {
            return Vec::new();
        }
        let mut named: Vec<ThreadId> = facts.awaits.iter().flat_map(|(_, named)| named).copied().collect();
        named.sort_unstable();
        named.dedup();
        named.into_iter().filter_map(|thread| Some(self.node(thread)?.address.path.clone())).collect()
    }

    /// Whether `me`, who waits for `node`, has yet to hear of its stall. Of those it did not name it hears only when it
    /// is their parent, or when their parent has no turn to hear it in.
    pub(crate) fn hears_of_stall(&self, me: &Node, node: &Node, named: bool) -> bool {
        let Some(stall) = node.facts().watch.stall() else { return false };
        let mine = || {
            let parent = node.meta.parent_thread_id;
            parent == Some(me.meta.id) || parent.and_then(|parent| self.node(parent)).is_none_or(|p| !p.is_busy())
        };
        let heard = me.facts().heard.get(&node.meta.id).copied();
        heard != Some(stall) && (named || mine())
    }

    /// `me` is told of the stalls that these have now.
    pub(crate) fn heard_of_stalls(me: &Node, nodes: &[Arc<Node>]) {
        for node in nodes {
            let stall = node.facts().watch.stall();
            if let Some(stall) = stall {
                me.facts().heard.insert(node.meta.id, stall);
            }
        }
    }
}

fn look(tree: &Weak<Inner>, after: Duration) -> Option<Instant> {
    Some(Tree(tree.upgrade()?).look(Instant::now(), after))
}

/// Whether time counts for an agent that stands so.
pub(crate) fn counts(status: Status, waiting_on: Option<WaitingOn>) -> bool {
    match (status, waiting_on) {
        (Status::Running, _) => true,
        (Status::Waiting, on) => !matches!(on, Some(WaitingOn::Agent | WaitingOn::Approval | WaitingOn::Budget)),
        _ => false,
    }
}

/// Whether something has come of an agent's work when this is said of it.
pub(crate) fn is_progress(event: &EventKind) -> bool {
    matches!(
        event,
        EventKind::TurnStarted { .. }
            | EventKind::ItemCompleted { .. }
            | EventKind::MailDelivered { .. }
            | EventKind::TurnCompleted { .. }
    )
}
