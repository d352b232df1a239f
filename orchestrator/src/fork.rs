//! Forking: what a child takes over of its parent's conversation.

use std::ops::ControlFlow;

use protocol::{Item, ItemKind, Role, TurnId};
use rollout::{ItemRecord, Record, SessionMeta};

use crate::node::Node;
use crate::tree::Tree;
use crate::{TreeError, tools};

/// How much of the parent's conversation a child begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Nothing.
    None,
    /// All of it.
    All,
    /// The last turns, the running one included.
    Last(usize),
}

/// What an open call of the parent is answered with in the child.
const BELONGS_TO_PARENT: &str = "this call belongs to the parent; its output is not part of the fork";

/// The lines that a forked child begins with: its own instructions, then the parent's items, marked as copies. None
/// for a child that begins fresh; its first turn writes its instructions.
pub(crate) fn forked(tree: &Tree, parent: &Node, child: &SessionMeta, turns: Turns) -> Result<Vec<Record>, TreeError> {
    if turns == Turns::None {
        return Ok(Vec::new());
    }
    let mut window = Window::default();
    tree.0.options.store.walk_window(parent.meta.id, |line| {
        window.line(line.record);
        ControlFlow::Continue(())
    })?;
    let own = preamble(tree, child)?.into_iter().map(|item| record(item, None));
    let copies = select(&window, turns).into_iter().map(|item| record(item, Some(parent.meta.id)));
    Ok(own.chain(copies).map(Record::Item).collect())
}

/// What the parent's context is made of.
#[derive(Default)]
struct Window {
    items: Vec<ItemRecord>,
    /// How many of them, from the first on, a compaction has put in the place of earlier turns.
    kept: usize,
}

impl Window {
    fn line(&mut self, line: Record) {
        match line {
            Record::Item(item) => self.items.push(item),
            Record::Compacted(compacted) => {
                if let Some(history) = compacted.replacement_history {
                    self.kept = history.len();
                    self.items = history.into_iter().map(|item| record(item, None)).collect();
                }
            }
            _ => {}
        }
    }
}

/// The child's own instructions. Its tools are asked for by name only; it gets its real hands when it is loaded.
fn preamble(tree: &Tree, child: &SessionMeta) -> Result<Vec<Item>, TreeError> {
    let granted = tree.granted(child)?;
    let hands = tree.0.options.workshop.hands(&Tree::agent_facts(child, &granted)).tools();
    let mut names: Vec<&str> = tools::names(&granted).collect();
    names.extend(hands.iter().map(|tool| tool.name()));
    tree.preamble(child, &names)
}

fn record(item: Item, copied_from: Option<protocol::ThreadId>) -> ItemRecord {
    ItemRecord { item, effect: None, mail: Vec::new(), turn: None, copied_from }
}

/// The items of the last turns, without the parent's own instructions, with an output for every open call.
fn select(window: &Window, turns: Turns) -> Vec<Item> {
    let Window { items, kept } = window;
    let from = match turns {
        Turns::None => items.len(),
        Turns::All => 0,
        Turns::Last(count) => beginning(window, count),
    };
    let mut copies = Vec::new();
    let mut open = Vec::new();
    let mut at_start = true;
    for (index, record) in items.iter().enumerate().skip(from) {
        let item = &record.item;
        // A context begins with instructions and environment; the child has its own.
        let context = at_start && index >= *kept && record.mail.is_empty() && record.copied_from.is_none();
        if context && matches!(item.kind(), ItemKind::Message(Role::Developer | Role::User)) {
            continue;
        }
        at_start = index < *kept;
        if let Some(call) = item.call() {
            open.push((record.effect, call));
        } else if item.kind() == ItemKind::Output {
            let answered = item.answered_call_id().unwrap_or_default();
            if let Some(at) = open.iter().position(|(effect, call)| match record.effect {
                Some(_) => *effect == record.effect,
                None => call.call_id == answered,
            }) {
                open.remove(at);
            }
        }
        copies.push(item.clone());
    }
    copies.extend(open.iter().map(|(_, call)| Item::output(call, BELONGS_TO_PARENT)));
    copies
}

/// Where the last `count` turns begin. Turns that a compaction has shortened come with all that it kept.
fn beginning(Window { items, kept }: &Window, count: usize) -> usize {
    let mut seen: Vec<TurnId> = Vec::new();
    for (index, record) in items.iter().enumerate().rev() {
        if index < *kept {
            return 0;
        }
        let Some(turn) = record.turn else { return index + 1 };
        if seen.last() != Some(&turn) {
            if seen.len() == count {
                return index + 1;
            }
            seen.push(turn);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, text: &str, turn: TurnId, mail: bool) -> ItemRecord {
        let mail = if mail { vec![protocol::MailId::new()] } else { Vec::new() };
        ItemRecord { item: Item::message(role, text), effect: None, mail, turn: Some(turn), copied_from: None }
    }

    fn texts(items: &[ItemRecord], turns: Turns) -> Vec<String> {
        told(&Window { items: items.to_vec(), kept: 0 }, turns)
    }

    fn told(window: &Window, turns: Turns) -> Vec<String> {
        select(window, turns).iter().map(|item| item.call().map_or_else(|| item.text(), |call| call.name)).collect()
    }

    #[test]
    fn instructions_stay_and_open_calls_are_answered() {
        let [a, b] = [TurnId::new(), TurnId::new()];
        let mut items = vec![
            message(Role::Developer, "instructions", a, false),
            message(Role::User, "environment", a, false),
            message(Role::User, "first", a, true),
            message(Role::Assistant, "answer", a, false),
            message(Role::User, "second", b, true),
        ];
        items.push(ItemRecord { item: Item::function_call("c", "spawn_agent", "{}"), ..items[4].clone() });
        assert_eq!(texts(&items, Turns::All), ["first", "answer", "second", "spawn_agent", BELONGS_TO_PARENT]);
        assert_eq!(texts(&items, Turns::Last(1)), ["second", "spawn_agent", BELONGS_TO_PARENT]);
        assert_eq!(texts(&items, Turns::Last(9)), ["first", "answer", "second", "spawn_agent", BELONGS_TO_PARENT]);
        assert_eq!(texts(&items, Turns::None), [""; 0]);
    }

    #[test]
    fn what_a_compaction_kept_stands_for_the_turns_before_it() {
        let [a, b] = [TurnId::new(), TurnId::new()];
        let mut window = Window::default();
        window.line(Record::Item(message(Role::User, "long ago", a, true)));
        window.line(Record::Compacted(Box::new(rollout::Compacted {
            replacement_history: Some(vec![Item::message(Role::User, "kept")]),
            ..rollout::Compacted::default()
        })));
        window.line(Record::Item(message(Role::Developer, "instructions", b, false)));
        window.line(Record::Item(message(Role::User, "second", b, true)));
        assert_eq!(told(&window, Turns::All), ["kept", "second"]);
        assert_eq!(told(&window, Turns::Last(1)), ["kept", "second"]);
        window.line(Record::Item(message(Role::User, "third", TurnId::new(), true)));
        assert_eq!(told(&window, Turns::Last(1)), ["third"]);
    }
}
