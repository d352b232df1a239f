//! Verifies a file against what must always be true: no gaps, a closed transcript, mail exactly once, one end a task.

use std::collections::{HashMap, HashSet};
use std::fmt;

use protocol::{EffectId, ItemKind, MailId, Role};

use crate::{ItemRecord, Line, Record, State, UsageStage};

/// Something that should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line.
    pub ordinal: u64,
    /// What it breaks.
    pub rule: Rule,
    /// How.
    pub text: String,
}

/// What must always be true of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Ordinals count from 1 without gaps.
    Ordinals,
    /// Before every sample each call has exactly one output, in the order of the calls.
    ClosedTranscript,
    /// Each mail enters the context once, after it was accepted and unless it went back.
    ExactlyOnce,
    /// Every task ends exactly once.
    OneEnd,
    /// A checkpoint says what the lines before it come to.
    Checkpoint,
    /// What a file says that another one of its tree holds, that one holds.
    Kept,
}

struct Open {
    effect: Option<EffectId>,
    call_id: String,
}

/// Verifies the lines of one file, one after another. It keeps ids of mail and tasks, and no line.
#[derive(Default)]
pub struct Checker {
    findings: Vec<Finding>,
    ordinal: u64,
    open: Vec<Open>,
    /// Whether the line before, among items, came from the model.
    sampling: bool,
    accepted: HashSet<MailId>,
    delivered: HashMap<MailId, u64>,
    returned: HashSet<MailId>,
    ended: HashMap<MailId, u64>,
    /// What the lines so far come to, without the conversation, as long as none is missing.
    state: Option<State>,
}

/// Verifies the lines of one file. What a fork takes over, copied or by reference, is another file's.
pub fn check(lines: &[Line]) -> Vec<Finding> {
    let mut checker = Checker::default();
    lines.iter().flat_map(|line| checker.line(line)).collect()
}

impl Checker {
    /// Takes in the next line; what is wrong with it.
    pub fn line(&mut self, line: &Line) -> Vec<Finding> {
        self.look(line);
        std::mem::take(&mut self.findings)
    }

    fn report(&mut self, rule: Rule, text: String) {
        self.findings.push(Finding { ordinal: self.ordinal, rule, text });
    }

    fn look(&mut self, line: &Line) {
        let expected = self.ordinal + 1;
        self.ordinal = line.ordinal;
        if line.ordinal != expected {
            self.report(Rule::Ordinals, format!("expected ordinal {expected}"));
            self.state = None;
        }
        self.compare(line);
        match &line.record {
            Record::Mail(mail) => {
                self.accepted.insert(mail.id);
            }
            Record::MailReturned(back) => {
                for id in &back.ids {
                    if self.delivered.contains_key(id) {
                        self.report(Rule::ExactlyOnce, format!("mail {id} went back although it was delivered"));
                    }
                    self.returned.insert(*id);
                }
            }
            Record::TaskDone(done) => {
                if let Some(first) = self.ended.get(&done.task) {
                    self.report(Rule::OneEnd, format!("task {} ended already at {first}", done.task));
                } else {
                    self.ended.insert(done.task, line.ordinal);
                }
            }
            // A reply is complete: what the model says next is another sample.
            Record::Usage(usage) if usage.stage == UsageStage::Settled => self.sampling = false,
            Record::Item(item) if item.copied_from.is_none() => self.item(item),
            _ => {}
        }
    }

    /// Compares a checkpoint with what it stands for.
    fn compare(&mut self, line: &Line) {
        match (&mut self.state, &line.record) {
            (None, Record::SessionMeta(meta)) if line.ordinal == 1 => {
                self.state = Some(State { transcript_complete: false, ..State::new((**meta).clone()) });
            }
            (Some(state), record) => {
                let differs = matches!(record, Record::Checkpoint(checkpoint) if **checkpoint != state.checkpoint());
                state.apply(line);
                // Long texts, and nobody asks for them here.
                state.done.clear();
                if differs {
                    self.report(Rule::Checkpoint, "it does not say what the lines before it come to".to_owned());
                }
            }
            _ => {}
        }
    }

    fn item(&mut self, record: &ItemRecord) {
        for id in &record.mail {
            if let Some(first) = self.delivered.get(id) {
                self.report(Rule::ExactlyOnce, format!("mail {id} was delivered already at {first}"));
            } else if self.returned.contains(id) {
                self.report(Rule::ExactlyOnce, format!("mail {id} was delivered although it went back"));
            } else if !self.accepted.contains(id) {
                self.report(Rule::ExactlyOnce, format!("mail {id} was delivered but never accepted"));
            }
            self.delivered.entry(*id).or_insert(self.ordinal);
        }
        let (model, output) = match record.item.kind() {
            ItemKind::Message(Role::Assistant)
            | ItemKind::Reasoning
            | ItemKind::FunctionCall
            | ItemKind::CustomCall => (true, false),
            ItemKind::Output => (false, true),
            ItemKind::Message(_) => (false, false),
            // Who made an item of an unknown kind is unknown too.
            ItemKind::Other => return,
        };
        if model && !self.sampling && !self.open.is_empty() {
            let missing: Vec<&str> = self.open.iter().map(|open| open.call_id.as_str()).collect();
            let text = format!("a sample began while calls had no output: {}", missing.join(", "));
            self.report(Rule::ClosedTranscript, text);
            // Reported once, not again at every sample that follows.
            self.open.clear();
        }
        self.sampling = model;
        if let Some(call) = record.item.call() {
            self.open.push(Open { effect: record.effect, call_id: call.call_id });
        } else if output {
            self.output(record);
        }
    }

    fn output(&mut self, record: &ItemRecord) {
        let call_id = record.item.answered_call_id().unwrap_or_default();
        let at = self.open.iter().position(|open| match record.effect {
            Some(effect) => open.effect == Some(effect),
            None => open.call_id == call_id,
        });
        match at {
            Some(at) => {
                self.open.remove(at);
                if at > 0 {
                    self.report(Rule::ClosedTranscript, format!("the output of `{call_id}` is out of order"));
                }
            }
            None => self.report(Rule::ClosedTranscript, format!("the output of `{call_id}` answers no open call")),
        }
    }
}

impl Rule {
    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ordinals => "ordinals",
            Self::ClosedTranscript => "closed_transcript",
            Self::ExactlyOnce => "exactly_once",
            Self::OneEnd => "one_end",
            Self::Checkpoint => "checkpoint",
            Self::Kept => "kept",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}", self.ordinal, self.rule.as_str(), self.text)
    }
}

#[cfg(test)]
mod tests;
