//! When a waiting agent goes on: a rule over plain values, and what those values are.

use std::collections::HashSet;
use std::sync::Arc;

use protocol::{Mail, MailKind, Party, Status, ThreadId};

use super::node::Node;
use super::tree::Tree;

/// One agent that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) thread: ThreadId,
    /// It has a turn, or one is about to start.
    pub(crate) busy: bool,
    pub(crate) status: Status,
    /// It has stalled, and whoever waits has yet to hear of it.
    pub(crate) stalled: bool,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woke {
    /// A person said something.
    Input,
    /// Tasks ended.
    Results,
    /// Other mail came.
    Messages,
    /// Nothing that is waited for works any more.
    Settled,
    /// Nothing comes any more of the work of one that is waited for.
    Stalled,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Go on at once.
    Wake(Woke),
    /// Results are there and more may follow in a moment: go on, but not before those had a chance to come along.
    Linger,
    /// Wait on.
    Wait,
}

impl Woke {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Results => "results",
            Self::Messages => "messages",
            Self::Settled => "settled",
            Self::Stalled => "stalled",
        }
    }
}

/// Decides for an agent with `pending` mail that waits for `awaited`, or, when it named nobody (`any`), for whatever
/// comes first.
///
/// A person's words and messages wake at once. Results wake at once when nobody else works; while others do, several
/// results of one burst are worth one request instead of one each, so the wait lingers a moment.
pub(crate) fn verdict(pending: &[Mail], awaited: &[Awaited], any: bool) -> Verdict {
    if pending.iter().any(|mail| mail.kind == MailKind::Input) {
        return Verdict::Wake(Woke::Input);
    }
    if pending.iter().any(|mail| !matches!(mail.kind, MailKind::Result | MailKind::Input)) {
        return Verdict::Wake(Woke::Messages);
    }
    let works = awaited.iter().any(|agent| agent.busy);
    let from_awaited = |mail: &Mail| match &mail.from {
        Party::Agent(from) => any || awaited.iter().any(|agent| agent.thread == from.thread),
        Party::Client { .. } => true,
    };
    match (pending.iter().any(from_awaited), works) {
        (true, false) => Verdict::Wake(Woke::Results),
        (true, true) => Verdict::Linger,
        (false, true) if awaited.iter().any(|agent| agent.stalled) => Verdict::Wake(Woke::Stalled),
        (false, true) => Verdict::Wait,
        (false, false) if pending.is_empty() => Verdict::Wake(Woke::Settled),
        // Results of others, while nobody that was named works.
        (false, false) => Verdict::Wake(Woke::Results),
    }
}

impl Tree {
    /// Those whom an agent waits for that names nobody: everybody it can reach but itself and those above it, who may
    /// be waiting for it.
    pub(crate) fn others(&self, me: &Node) -> Vec<Arc<Node>> {
        let others = self.reachable().into_iter();
        others.filter(|node| !me.address.path.is_at_or_below(&node.address.path)).collect()
    }

    /// Whether anything can still come of an agent: it works, or it waits for somebody of whom something can come, or
    /// mail lies there that it is about to read. Waiting in a ring, `me` included, is no work: nobody in it moves.
    pub(crate) fn moves(&self, node: &Arc<Node>, me: ThreadId) -> bool {
        let mut seen = HashSet::from([me]);
        let mut ahead = vec![Arc::clone(node)];
        while let Some(node) = ahead.pop() {
            if !seen.insert(node.meta.id) || !node.is_busy() {
                continue;
            }
            let awaits = node.facts().awaits.clone();
            if awaits.is_empty() || node.inbox.lock().pending().next().is_some() {
                return true;
            }
            for (_, named) in awaits {
                if named.is_empty() {
                    ahead.extend(self.others(&node));
                } else {
                    ahead.extend(named.iter().filter_map(|thread| self.node(*thread)));
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Address, AgentPath, MailId, RequestId, TreeId};

    use super::*;

    fn mail(kind: MailKind, from: Option<ThreadId>) -> Mail {
        let to = Address { path: AgentPath::root(), thread: ThreadId::new() };
        Mail {
            id: MailId::new(),
            tree: TreeId::from(to.thread),
            from: from.map_or(Party::Client { client: RequestId::new() }, |thread| {
                Party::Agent(Address { path: AgentPath::root(), thread })
            }),
            to,
            kind,
            trigger_turn: false,
            sequence: 1,
            body: "x".to_owned(),
            whole: None,
            answers: None,
            outcome: None,
            continues: None,
            deadline: None,
        }
    }

    fn agent(thread: ThreadId, busy: bool) -> Awaited {
        Awaited { thread, busy, status: if busy { Status::Running } else { Status::Completed }, stalled: false }
    }

    #[test]
    fn verdicts() {
        let [a, b, c] = [ThreadId::new(), ThreadId::new(), ThreadId::new()];
        let result = |from| mail(MailKind::Result, Some(from));
        let both = [agent(a, true), agent(b, false)];
        assert_eq!(verdict(&[], &both, false), Verdict::Wait);
        assert_eq!(verdict(&[result(b)], &both, false), Verdict::Linger);
        assert_eq!(verdict(&[result(c)], &both, false), Verdict::Wait);
        assert_eq!(verdict(&[result(c)], &both, true), Verdict::Linger);
        assert_eq!(verdict(&[mail(MailKind::Message, Some(c))], &both, false), Verdict::Wake(Woke::Messages));
        assert_eq!(verdict(&[mail(MailKind::Input, None), result(a)], &both, false), Verdict::Wake(Woke::Input));
        let done = [agent(a, false)];
        assert_eq!(verdict(&[], &done, false), Verdict::Wake(Woke::Settled));
        assert_eq!(verdict(&[result(a)], &done, false), Verdict::Wake(Woke::Results));
        assert_eq!(verdict(&[result(c)], &done, false), Verdict::Wake(Woke::Results));
        assert_eq!(verdict(&[], &[], true), Verdict::Wake(Woke::Settled));
        let stalled = [agent(b, true), Awaited { stalled: true, ..agent(a, true) }];
        assert_eq!(verdict(&[], &stalled, false), Verdict::Wake(Woke::Stalled));
        assert_eq!(verdict(&[result(b)], &stalled, false), Verdict::Linger, "the result tells it, too");
        assert_eq!(verdict(&[mail(MailKind::Input, None)], &stalled, true), Verdict::Wake(Woke::Input));
    }
}
