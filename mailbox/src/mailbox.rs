//! One agent's mailbox: identity, order, and the phase of its turn.

use std::collections::{BTreeMap, HashMap};

use protocol::{Mail, MailId, MailKind, Party, ThreadId};

use crate::{MAX_BATCH_BYTES, MAX_PENDING, MAX_PENDING_BYTES, Refused, Unread};

/// Whom a sequence is counted for: each agent for itself, all clients together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {
    /// An agent.
    Agent(ThreadId),
    /// Anybody outside the tree. Requests of clients are told apart by their ids; there is one count for them,
    /// because a client lives for one request.
    Client,
}

/// Whether mail may be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It is new: write it, then [`Mailbox::accept`] it.
    New,
    /// It was accepted before: tell the sender so and write nothing.
    Known,
    /// It cannot be taken: too much waits already, or the agent is closed.
    Full(Refused),
}

/// Whether mail may enter the running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Mail joins the next request of this turn.
    CurrentTurn,
    /// The final answer is out: mail waits for the next turn.
    NextTurn,
}

/// Mail accepted for one agent and not yet in its context, and what decides when it may enter.
///
/// A turn calls [`begin_turn`](Self::begin_turn), then at every request boundary [`drain`](Self::drain), and reports
/// what it saw in between: [`final_text`](Self::final_text), [`tool_called`](Self::tool_called),
/// [`follow_up`](Self::follow_up), [`stop_hook`](Self::stop_hook). It decides with [`has_pending`](Self::has_pending)
/// whether it needs another request, and ends with [`end_turn`](Self::end_turn).
#[derive(Clone, Debug, Default)]
pub struct Mailbox {
    /// By place of arrival, so that mail put back stands where it stood.
    pending: BTreeMap<u64, Mail>,
    /// Bytes of all pending bodies.
    bytes: usize,
    /// Pending mail that wakes.
    waking: usize,
    /// Every mail ever accepted, with its place of arrival; `BEFORE` when it was in the context already when this
    /// mailbox was restored.
    known: HashMap<MailId, u64>,
    highest: HashMap<Sender, u64>,
    arrivals: u64,
    turn: Option<Turn>,
    /// The agent is closed: nothing is accepted any more.
    shut: bool,
}

/// Place of arrival of mail that an earlier owner delivered.
const BEFORE: u64 = 0;

#[derive(Clone, Copy, Debug)]
struct Turn {
    phase: Phase,
    /// The mail it began with has not been answered yet, so nothing may be put behind it.
    holds: bool,
    interrupted: bool,
}

impl Mailbox {
    /// The mailbox of an agent, from its rollout: mail neither delivered nor returned (in the order of the lines),
    /// ids of all mail ever accepted (pending ones may be among them or not), and the highest sequence accepted from
    /// each sender.
    pub fn restore<S: Into<Sender>>(
        pending: Vec<Mail>,
        known: impl IntoIterator<Item = MailId>,
        sequences: impl IntoIterator<Item = (S, u64)>,
    ) -> Self {
        let mut mailbox = Self::default();
        for mail in pending {
            mailbox.accept(mail);
        }
        for id in known {
            mailbox.known.entry(id).or_insert(BEFORE);
        }
        for (sender, sequence) in sequences {
            mailbox.note(sender.into(), sequence);
        }
        mailbox
    }

    /// Whether `mail` may be taken. Its id is known, or its sequence (when it has one; 0 is none) is not above what
    /// this sender has sent: it was accepted before. Results and returned mail are never refused as too many: they
    /// are owed, and there are only as many as this agent gave tasks and sent mail.
    pub fn offer(&self, mail: &Mail) -> Offer {
        if self.known.contains_key(&mail.id) || (mail.sequence > 0 && mail.sequence < self.next_sequence(&mail.from)) {
            return Offer::Known;
        }
        let to = || mail.to.path.clone();
        if self.shut {
            return Offer::Full(Refused::Closed { to: to() });
        }
        if matches!(mail.kind, MailKind::Result | MailKind::Returned) {
            return Offer::New;
        }
        if self.pending.len() >= MAX_PENDING {
            Offer::Full(Refused::TooMany { to: to() })
        } else if self.bytes + mail.body.len() > MAX_PENDING_BYTES {
            Offer::Full(Refused::TooLarge { to: to() })
        } else {
            Offer::New
        }
    }

    /// The sequence of the next mail from `from`: one more than the highest accepted. Asked for under the same hold
    /// of the agent's lock as the write.
    pub fn next_sequence(&self, from: &Party) -> u64 {
        self.highest.get(&from.into()).map_or(1, |highest| highest.saturating_add(1))
    }

    /// Takes mail that is in the rollout now. A second time is a no-op. Input that wakes is a steer when a turn runs:
    /// it reopens the turn's phase.
    pub fn accept(&mut self, mail: Mail) {
        if self.known.contains_key(&mail.id) {
            return;
        }
        self.note((&mail.from).into(), mail.sequence);
        if let Some(turn) = &mut self.turn
            && mail.kind == MailKind::Input
            && mail.trigger_turn
        {
            turn.phase = Phase::CurrentTurn;
        }
        self.arrivals += 1;
        self.known.insert(mail.id, self.arrivals);
        self.put(self.arrivals, mail);
    }

    /// Begins a turn and gives what it takes in first: everything pending, input of people before other mail, each
    /// in the order of arrival, up to [`MAX_BATCH_BYTES`]. When there is any, nothing more enters before the first
    /// request: a [`drain`](Self::drain) before the first reply gives nothing.
    pub fn begin_turn(&mut self) -> Vec<Mail> {
        let taken = self.take();
        self.turn = Some(Turn { phase: Phase::CurrentTurn, holds: !taken.is_empty(), interrupted: false });
        taken
    }

    /// What enters the context before the next request; called once at each request boundary. Order and bound are
    /// those of [`begin_turn`](Self::begin_turn). Nothing without a turn, in [`Phase::NextTurn`], after an interrupt,
    /// and before the first request of a turn that began with mail.
    pub fn drain(&mut self) -> Vec<Mail> {
        match &mut self.turn {
            Some(turn) if turn.holds => {
                turn.holds = false;
                Vec::new()
            }
            Some(Turn { phase: Phase::CurrentTurn, interrupted: false, .. }) => self.take(),
            _ => Vec::new(),
        }
    }

    /// Takes one pending mail out, which will never enter the context. None when it is not pending: it was taken into a
    /// turn, or never came.
    pub fn withdraw(&mut self, id: MailId) -> Option<Mail> {
        let arrival = *self.known.get(&id)?;
        let mail = self.pending.remove(&arrival)?;
        self.bytes -= mail.body.len();
        self.waking -= usize::from(mail.trigger_turn);
        Some(mail)
    }

    /// Puts mail back that was taken but could not be recorded. It stands where it stood.
    pub fn restore_undelivered(&mut self, mails: Vec<Mail>) {
        for mail in mails {
            match self.known.get(&mail.id).copied() {
                Some(BEFORE) => {}
                Some(arrival) => self.put(arrival, mail),
                None => self.accept(mail),
            }
        }
    }

    /// The model has said its final answer: text that is not blank and not marked as commentary. The phase becomes
    /// [`Phase::NextTurn`], unless mail that wakes is pending; that is still answered in this turn.
    pub fn final_text(&mut self) {
        let answered = self.waking == 0;
        if let Some(turn) = &mut self.turn {
            turn.holds = false;
            if answered {
                turn.phase = Phase::NextTurn;
            }
        }
    }

    /// The model called a tool: the turn goes on, whatever text came before.
    pub fn tool_called(&mut self) {
        self.go_on();
    }

    /// The reply is over and the turn needs another request.
    pub fn follow_up(&mut self) {
        self.go_on();
    }

    /// A stop hook sent the turn back to work.
    pub fn stop_hook(&mut self) {
        self.go_on();
    }

    /// The turn is being stopped. It drains no more; everything pending stays and counts for the next turn once
    /// [`end_turn`](Self::end_turn) is called.
    pub fn interrupt(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.interrupted = true;
        }
    }

    /// Whether the agent is closed, or one above it.
    pub fn is_shut(&self) -> bool {
        self.shut
    }

    /// The agent is closed, or one above it is: nothing is accepted any more. What waits stays until it is cleared.
    pub fn shut(&mut self) {
        self.shut = true;
    }

    /// Takes out everything that waits, in the order of arrival: its rollout says now where it went.
    pub fn clear(&mut self) -> Vec<Mail> {
        self.bytes = 0;
        self.waking = 0;
        std::mem::take(&mut self.pending).into_values().collect()
    }

    /// The turn is over. Without a turn it is a no-op.
    pub fn end_turn(&mut self) {
        self.turn = None;
    }

    /// Whether the running turn needs another request because mail waits that it may take in.
    pub fn has_pending(&self) -> bool {
        self.phase() == Some(Phase::CurrentTurn)
            && !self.turn.is_some_and(|turn| turn.interrupted)
            && !self.pending.is_empty()
    }

    /// Whether an idle agent has mail that starts a turn. False while a turn runs: mail that may not join it is asked
    /// for again after its end.
    pub fn wakes(&self) -> bool {
        self.turn.is_none() && self.waking > 0
    }

    /// The phase of the running turn; `None` when idle.
    pub fn phase(&self) -> Option<Phase> {
        self.turn.map(|turn| turn.phase)
    }

    /// Takes in the ids of mail that was accepted earlier and is not pending: a mailbox that was restored from less
    /// than the whole rollout becomes whole.
    pub fn learn(&mut self, known: impl IntoIterator<Item = MailId>) {
        for id in known {
            self.known.entry(id).or_insert(BEFORE);
        }
    }

    /// Whether this mail was ever accepted here.
    pub fn knows(&self, id: MailId) -> bool {
        self.known.contains_key(&id)
    }

    /// Mail that is not in the context yet, in the order of arrival.
    pub fn pending(&self) -> impl Iterator<Item = &Mail> {
        self.pending.values()
    }

    /// What waits, counted by kind.
    pub fn unread(&self) -> Unread {
        self.pending.values().map(|mail| mail.kind).collect()
    }

    /// The highest sequence accepted from each sender, for a checkpoint; by sender, so that the same state gives the
    /// same line.
    pub fn sequences(&self) -> Vec<(Sender, u64)> {
        let mut all: Vec<_> = self.highest.iter().map(|(sender, sequence)| (*sender, *sequence)).collect();
        all.sort_unstable();
        all
    }

    fn go_on(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.phase = Phase::CurrentTurn;
            turn.holds = false;
        }
    }

    fn note(&mut self, sender: Sender, sequence: u64) {
        if sequence > 0 {
            let highest = self.highest.entry(sender).or_default();
            *highest = sequence.max(*highest);
        }
    }

    fn put(&mut self, arrival: u64, mail: Mail) {
        let (bytes, waking) = (mail.body.len(), usize::from(mail.trigger_turn));
        if self.pending.insert(arrival, mail).is_none() {
            self.bytes += bytes;
            self.waking += waking;
        }
    }

    fn take(&mut self) -> Vec<Mail> {
        let mut order: Vec<(bool, u64, usize)> = self
            .pending
            .iter()
            .map(|(arrival, mail)| (mail.kind != MailKind::Input, *arrival, mail.body.len()))
            .collect();
        order.sort_unstable();
        let mut size = 0;
        let mut taken = Vec::new();
        for (_, arrival, bytes) in order {
            size += bytes;
            if size > MAX_BATCH_BYTES && !taken.is_empty() {
                break;
            }
            taken.extend(self.pending.remove(&arrival));
        }
        for mail in &taken {
            self.bytes -= mail.body.len();
            self.waking -= usize::from(mail.trigger_turn);
        }
        taken
    }
}

impl From<&Party> for Sender {
    fn from(party: &Party) -> Self {
        party.thread().into()
    }
}

impl From<Option<ThreadId>> for Sender {
    /// As [`Party::thread`] gives it: no thread is a client.
    fn from(thread: Option<ThreadId>) -> Self {
        thread.map_or(Self::Client, Self::Agent)
    }
}

#[cfg(test)]
mod tests;
