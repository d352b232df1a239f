//! The mails that the routing rules demand. Their sequence is 0 until the recipient's lock is held.

use protocol::{Address, Mail, MailId, MailKind, Party, TaskEnd, TaskId, TreeId};
use stdx::AbsPath;

use crate::route::forwarded_id;
use crate::{MAX_BODY, cut_body};

/// Bytes kept free in a returned mail for the sentence before its words: the longest path has 1,045, the reason 800.
const PREFACE: usize = 2 * 1024;

/// The result of `task`, from the agent that did it to `to`, under the id that [`crate::route_result`] gave. `whole`
/// is the file with all of the words when they are over [`MAX_BODY`].
pub fn result(
    tree: TreeId,
    task: TaskId,
    (id, from, to): (MailId, Address, Address),
    end: &TaskEnd,
    whole: Option<AbsPath>,
) -> Mail {
    let words = end.words();
    let body = cut_body(&words).map_or_else(|| words.clone(), str::to_owned);
    Mail {
        id,
        tree,
        from: Party::Agent(from),
        to,
        kind: MailKind::Result,
        trigger_turn: false,
        sequence: 0,
        body,
        whole,
        answers: Some(task),
        outcome: Some(end.outcome),
        continues: None,
        deadline: None,
    }
}

/// The result `mail` as it moves on to `to`. Its sender and its words stay.
pub fn forwarded(mail: &Mail, to: Address) -> Mail {
    Mail { id: forwarded_id(mail), to, trigger_turn: false, sequence: 0, ..mail.clone() }
}

/// `mail` as it comes back to `to`, with a sentence that says why.
pub fn returned(mail: &Mail, to: Address, reason: &str) -> Mail {
    let reason = stdx::one_line(reason, 200);
    let words = stdx::cut_end(&mail.body, MAX_BODY - PREFACE);
    Mail {
        id: mail.id.returned(),
        tree: mail.tree,
        from: Party::Agent(mail.to.clone()),
        to,
        kind: MailKind::Returned,
        trigger_turn: false,
        sequence: 0,
        body: format!("Not delivered to {}: {reason}. The {} said:\n\n{words}", mail.to.path, mail.kind.as_str()),
        whole: mail.whole.clone(),
        answers: Some(mail.id),
        outcome: None,
        continues: None,
        deadline: None,
    }
}

#[cfg(test)]
mod tests;
