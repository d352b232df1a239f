//! What is to be written about one agent.

use protocol::Mail;
use rollout::{Obligation, Summary};

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) bytes: u64,
    pub(crate) ordinal: u64,
    pub(crate) checksum: u64,
}

impl From<&Summary> for Mark {
    fn from(summary: &Summary) -> Self {
        Self { bytes: summary.bytes, ordinal: summary.ordinal, checksum: summary.checksum }
    }
}

impl Mark {
    /// Whether a row with this mark would refuse `summary` as the older of both.
    pub(crate) fn is_after(self, summary: &Summary) -> bool {
        (self.bytes, self.ordinal) > (summary.bytes, summary.ordinal)
    }
}

/// What is to be written about one agent.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// A row with this mark was seen to be wrong: it goes, however far ahead it claims to be.
    pub(crate) disproved: Option<Mark>,
    /// What stands there afterwards, unless the row is newer.
    pub(crate) summary: Option<Box<Summary>>,
    /// Whether a listing found that the row was not as it should be, or not there.
    pub(crate) listed: bool,
    /// Bytes it holds in memory, by estimate.
    pub(crate) weight: usize,
}

impl Change {
    /// What somebody noted.
    pub(crate) fn noted(summary: Summary) -> Self {
        let weight = BASE + weight(&summary);
        Self { disproved: None, summary: Some(Box::new(summary)), listed: false, weight }
    }

    /// What a listing found in a file, or that there is none, and the mark of a row that says otherwise.
    pub(crate) fn listed(disproved: Option<Mark>, summary: Option<Summary>) -> Self {
        let weight = BASE + summary.as_ref().map_or(0, weight);
        Self { disproved, summary: summary.map(Box::new), listed: true, weight }
    }

    /// This, and `later` after it. The newer summary stays, whichever came first.
    pub(crate) fn then(self, later: Self) -> Self {
        let place = |summary: &Option<Box<Summary>>| summary.as_ref().map(|summary| (summary.bytes, summary.ordinal));
        let disproved = later.disproved.or(self.disproved);
        let listed = self.listed || later.listed;
        let newest = if place(&later.summary) >= place(&self.summary) { later } else { self };
        Self { disproved, listed, ..newest }
    }
}

/// Bytes of a summary without its texts, about.
const BASE: usize = 1_024;

fn weight(summary: &Summary) -> usize {
    let words = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let end = |end: &protocol::TaskEnd| words(&end.text) + words(&end.reason);
    let letter = |mail: &Mail| BASE / 2 + mail.body.len();
    let owed = |obligation: &Obligation| match obligation {
        Obligation::Result { end: how, .. } => BASE / 2 + end(how),
        Obligation::Return { mail, reason } => letter(mail) + reason.len(),
    };
    let mail = summary.pending.iter().chain(&summary.taken_mail).chain(&summary.cut_off);
    words(&summary.first_task)
        + summary.last_end.as_ref().map_or(0, end)
        + mail.map(letter).sum::<usize>()
        + summary.open_calls.iter().map(|open| BASE / 2 + open.call.arguments.len()).sum::<usize>()
        + summary.obligations.iter().map(owed).sum::<usize>()
        + summary.warnings.iter().map(String::len).sum::<usize>()
        + (summary.processes.len() + summary.unsettled.len() + summary.tasks_taken.len()) * BASE / 2
        + summary.sequences.len() * 64
}
