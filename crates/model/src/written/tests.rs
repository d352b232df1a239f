use proptest::collection::vec;
use proptest::prelude::*;
use protocol::Role;
use serde_json::json;

use super::*;
use crate::{ModelRequest, Provider, chat, lab, messages};

const TEXTS: [&str; 7] = ["a", "b \"c\" \\ d", "é😀\n", "]}]}", "\"}]}", " ", ""];

/// Ids that servers repeat, that look like ours, and that are not allowed everywhere.
const IDS: [&str; 5] = ["x", "x_2", "call_1|y", "call_1_y", ""];

#[derive(Clone, Debug)]
enum Step {
    /// Something is said, by the kind of item, an id and a text.
    Item(usize, usize, usize),
    /// A call and its answer.
    Work(usize, usize),
    /// The next request, of one of [`ASKED`].
    Ask(usize),
    /// A few of the items become the beginning of another list.
    Compact(usize),
    /// A clone is asked with something else at its end, as the conversation goes on with what it had.
    Part(usize),
    /// Nobody will ask for a while.
    Rest,
}

fn step() -> impl Strategy<Value = Step> {
    let item = || (0..ITEMS, 0..IDS.len(), 0..TEXTS.len());
    prop_oneof![
        8 => item().prop_map(|(kind, id, text)| Step::Item(kind, id, text)),
        3 => (0..IDS.len(), 0..TEXTS.len()).prop_map(|(id, text)| Step::Work(id, text)),
        6 => prop_oneof![4 => Just(0_usize), 1 => 0..ASKED.len()].prop_map(Step::Ask),
        1 => (0..20_usize).prop_map(Step::Compact),
        1 => (0..ITEMS).prop_map(Step::Part),
        1 => Just(Step::Rest),
    ]
}

/// How many kinds [`item`] knows.
const ITEMS: usize = 16;

fn item(kind: usize, id: usize, text: usize) -> Item {
    let (id, text) = (IDS[id], TEXTS[text]);
    let raw = |value: serde_json::Value| Item::parse(&value.to_string()).unwrap();
    let block = json!({"type": "thinking", "thinking": text, "signature": "S"});
    let thought = |wire, provider, rest: &str| {
        Item::parse(&format!(r#"{{"type":"reasoning","wire":"{wire}","provider":"{provider}",{rest}}}"#)).unwrap()
    };
    match kind {
        0 | 1 => Item::message(Role::User, text),
        2 => Item::message(Role::Developer, text),
        3 => Item::message(Role::Assistant, text),
        4 => raw(json!({"type": "message", "role": "assistant", "phase": "commentary",
            "content": [{"type": "output_text", "text": text}, {"type": "refusal", "refusal": "no"}]})),
        5 => Item::function_call(id, "f", "{\"n\": 1}"),
        6 => Item::function_call(id, "f", text),
        7 => Item::custom_call(id, "patch", text),
        8 => raw(json!({"type": "function_call", "call_id": id, "namespace": "n", "name": "f", "arguments": {"a": 1}})),
        9 | 10 => raw(json!({"type": "function_call_output", "call_id": id, "output": text})),
        11 => raw(json!({"type": "function_call_output", "call_id": id,
            "output": [{"type": "input_text", "text": text}, {"type": "input_text", "text": "more"}]})),
        12 => thought("messages", "lab", &format!("\"block\":{block}")),
        13 => thought("messages", "lab", &format!("\"block\":{block},\"after_note\":true")),
        14 => thought("chat", "lab", r#""field":"reasoning_content","text":"h\"m","extra":{"x":{"sig":1}}"#),
        _ => raw(json!({"type": "from_the_future"})),
    }
}

/// Who may be asked: providers and their addresses, which say what habits they have.
const ASKED: [(&str, &str); 5] = [
    ("lab", "http://x"),
    ("deepseek", "http://x"),
    ("other", "http://x"),
    ("lab", "http://x"),
    ("lab", "http://api.deepseek.com"),
];

/// The body that the `n`th of those who may be asked gets; the fourth over the other wire.
fn body(wire: Wire, n: usize, input: &Transcript, keep_from: usize) -> (String, usize, bool) {
    let (name, base_url) = ASKED[n];
    let provider = Provider::new(name, base_url, wire);
    let wire = match (n, wire) {
        (3, Wire::Chat) => Wire::Messages,
        (3, _) => Wire::Chat,
        _ => wire,
    };
    let origin = crate::fault::Origin { provider: provider.name.clone(), ..lab::origin(wire) };
    let request = ModelRequest { input: input.clone(), ..lab::request(&*lab::model(&provider), &[]) };
    let (body, noted) = match wire {
        Wire::Messages => messages::Messages::new(&provider).body(&origin, &request, keep_from),
        _ => (chat::Chat::new(&provider).body(&origin, &request, keep_from), false),
    };
    (body.json, body.kept, noted)
}

/// Asks, and compares with what is made in one go of the same items.
fn ask(wire: Wire, n: usize, input: &Transcript, keep_from: usize) -> Result<(), TestCaseError> {
    let whole: Transcript = input.items().iter().cloned().collect();
    prop_assert_eq!(body(wire, n, input, keep_from), body(wire, n, &whole, usize::MAX));
    Ok(())
}

fn push(input: &mut Transcript, kinds: &[usize]) {
    for kind in kinds {
        input.push(item(*kind, 0, 0));
    }
}

/// How many items are kept as they were written.
fn kept(input: &Transcript) -> usize {
    let kept = input.slot().take();
    let items = kept.as_ref().map_or(0, |kept| kept.items);
    if let Some(kept) = kept {
        input.slot().put(kept);
    }
    items
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn however_it_is_made_it_is_the_same(
        wire in prop_oneof![Just(Wire::Chat), Just(Wire::Messages)],
        keep_from in prop_oneof![Just(0_usize), 0..20_usize],
        steps in vec(step(), 0..60),
    ) {
        let mut input = Transcript::default();
        for step in steps {
            match step {
                Step::Item(kind, id, text) => input.push(item(kind, id, text)),
                Step::Work(id, text) => {
 input.push(item(5, id, text));
 input.push(item(9, id, text));
 }
                Step::Ask(n) => ask(wire, n, &input, keep_from)?,
                Step::Compact(from) => input = input.items().iter().skip(from).cloned().collect(),
                Step::Part(kind) => {
                    let mut other = input.clone();
                    let before = input.clone();
                    other.push(item(kind, 0, 0));
                    input.push(item(0, 0, 1));
                    for parted in [&other, &input] {
                        ask(wire, 0, parted, keep_from)?;
                    }
                    // What is a beginning of the other may know more of what stays, by that.
                    let whole: Transcript = before.items().iter().cloned().collect();
                    prop_assert_eq!(body(wire, 0, &before, keep_from).0, body(wire, 0, &whole, usize::MAX).0);
                    // Here the second of them is the same in both, and something before it is not.
                    let last = item(kind, 1, 0);
                    other.push(last.clone());
                    input.push(last);
                    for parted in [&other, &input] {
                        ask(wire, 0, parted, keep_from)?;
                    }
                }
                Step::Rest => input.rest(),
            }
        }
        ask(wire, 0, &input, keep_from)?;
    }
}

#[test]
fn what_has_settled_is_not_read_again() {
    for (wire, own) in [(Wire::Chat, 14), (Wire::Messages, 12)] {
        let mut input = Transcript::default();
        input.push(item(2, 0, 0));
        let check = |input: &mut Transcript, kinds: &[usize], open: usize| {
            push(input, kinds);
            ask(wire, 0, input, 0).unwrap();
            assert_eq!(input.len() - kept(input), open, "{kinds:?}");
        };
        // Nothing was said yet but what the program says at the start, and a user may say more.
        check(&mut input, &[2, 0], 3);
        // Answers end what they answer, calls that wait do not.
        check(&mut input, &[5, 9], 0);
        check(&mut input, &[3, 5, 5, 9], 4);
        check(&mut input, &[9], 0);
        // What nobody knows is no part of it.
        check(&mut input, &[15], 0);
        // The model's last words may go on, and a reply ends what was said before it.
        check(&mut input, &[0, 3], 1);
        check(&mut input, &[15, 3], 3);
        check(&mut input, &[0], 1);
        check(&mut input, &[own, 3], 2);
        // A list that was cut is another list.
        input = input.items().iter().skip(5).cloned().collect();
        assert_eq!(kept(&input), 0);
        check(&mut input, &[0], 1);
        input.rest();
        assert_eq!(kept(&input), 0);
    }
}

#[test]
fn a_short_conversation_is_not_kept() {
    let mut input = Transcript::default();
    while input.len() < KEEP_FROM - 2 {
        push(&mut input, &[5, 9]);
    }
    ask(Wire::Chat, 0, &input, KEEP_FROM).unwrap();
    assert_eq!(kept(&input), 0);
    push(&mut input, &[5, 9]);
    ask(Wire::Chat, 0, &input, KEEP_FROM).unwrap();
    assert_eq!(kept(&input), KEEP_FROM);
}

#[test]
fn a_beginning_of_it_does_not_take_what_is_kept_of_all_of_it_for_its_own() {
    let mut input: Transcript = [item(0, 0, 0), item(5, 0, 0), item(9, 0, 0)].into_iter().collect();
    let before = input.clone();
    push(&mut input, &[0, 3, 0]);
    ask(Wire::Chat, 0, &input, 0).unwrap();
    assert_eq!((kept(&before), before.len()), (5, 3));
    ask(Wire::Chat, 0, &before, 0).unwrap();
    ask(Wire::Chat, 0, &input, 0).unwrap();
}
