//! Where a result goes, and where mail goes that a closed agent leaves behind.

use protocol::{Address, Mail, MailId, MailKind, Party, RequestId, TaskId};

/// The way of one mail. Ids derive from the mail itself, so that going the same way twice is a no-op over there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// To the giver of the task.
    Deliver {
        /// The giver.
        to: Address,
        /// The id of the result.
        id: MailId,
    },
    /// A result whose giver is closed, to the nearest reachable agent above the giver.
    Forward {
        /// That agent.
        to: Address,
        /// The id over there; the same however many agents it passed.
        id: MailId,
    },
    /// Back to the sender, or to the nearest reachable agent above a closed sender.
    Return {
        /// That agent.
        to: Address,
        /// The id of the returned mail.
        id: MailId,
    },
    /// A task that no turn took in: it ends as closed, and its giver gets that one result by [`route_result`].
    EndTask,
    /// The client is told; there is no mail.
    Client(RequestId),
    /// It goes nowhere.
    Drop(Lost),
}

/// Why mail goes nowhere; the text stands in the rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// A returned mail is not returned again.
    #[error("returned mail is not returned again")]
    Returned,
    /// No agent up to the root is open.
    #[error("no agent up to the root is open: nobody is left to read it")]
    TreeClosed,
}

/// Where the result of `task` goes. `nearest` is the nearest reachable agent at or above the giver; ignored for a
/// client.
///
/// When the giver is closed the id is that of a forwarded result even though it never lay in the giver's rollout:
/// had it been accepted there just before the close, the forwarding of the giver's mail gives the same id.
pub fn route_result(task: TaskId, giver: &Party, nearest: Option<&Address>) -> Route {
    match (giver, nearest) {
        (Party::Client { client }, _) => Route::Client(*client),
        (Party::Agent(_), None) => Route::Drop(Lost::TreeClosed),
        (Party::Agent(giver), Some(nearest)) if giver.thread == nearest.thread => {
            Route::Deliver { to: giver.clone(), id: task.result() }
        }
        (Party::Agent(_), Some(nearest)) => Route::Forward { to: nearest.clone(), id: task.result().forwarded() },
    }
}

/// Where `mail` goes that its closed recipient never took in. `above_recipient` is the nearest reachable agent above
/// the recipient, `near_sender` the nearest reachable one at or above the sender.
pub fn route_undelivered(mail: &Mail, above_recipient: Option<&Address>, near_sender: Option<&Address>) -> Route {
    match (mail.kind, &mail.from) {
        (MailKind::Result, _) => match above_recipient {
            Some(to) => Route::Forward { to: to.clone(), id: forwarded_id(mail) },
            None => Route::Drop(Lost::TreeClosed),
        },
        (MailKind::Returned, _) => Route::Drop(Lost::Returned),
        (MailKind::Spawn | MailKind::Followup | MailKind::Input, _) => Route::EndTask,
        (MailKind::Message, Party::Client { client }) => Route::Client(*client),
        (MailKind::Message, Party::Agent(_)) => match near_sender {
            Some(to) => Route::Return { to: to.clone(), id: mail.id.returned() },
            None => Route::Drop(Lost::TreeClosed),
        },
    }
}

/// Derived from the task and not from the mail in hand: a result that moves on twice keeps the id it got first, and
/// an obligation that is driven again after both moves finds it known.
pub(crate) fn forwarded_id(mail: &Mail) -> MailId {
    mail.answers.map_or_else(|| mail.id.forwarded(), |task| task.result().forwarded())
}

#[cfg(test)]
mod tests;
