//! The bounds of a mailbox, and the texts that refuse.

use protocol::{AgentPath, MailKind};

/// Mails that may wait for one agent. More than any model can answer; a sender in a loop is stopped here.
pub const MAX_PENDING: usize = 10_000;

/// Bytes of bodies that may wait for one agent. The pending list is in memory, once for every resident agent.
pub const MAX_PENDING_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of one body. About 8,000 tokens, which keeps a mail with its frame below the cap of one item in a context.
pub const MAX_BODY: usize = 32 * 1024;

/// Bytes of bodies that enter the context at one request boundary, about 32,000 tokens: a mailbox that filled up
/// while its agent slept must not overflow the window in one go. What is left waits for the next boundary.
pub const MAX_BATCH_BYTES: usize = 4 * MAX_BODY;

/// Why mail is not taken. The text goes to whoever wanted to send it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many mails wait.
    #[error(
        "the mailbox of {to} is full: {MAX_PENDING} mails wait to be read; give it a task so that it reads them, or send to another agent"
    )]
    TooMany {
        /// Whose mailbox it is.
        to: AgentPath,
    },
    /// Too many bytes wait.
    #[error(
        "the mailbox of {to} is full: its unread mail would exceed {} MiB; give it a task so that it reads them, or send to another agent",
        MAX_PENDING_BYTES / (1024 * 1024)
    )]
    TooLarge {
        /// Whose mailbox it is.
        to: AgentPath,
    },
    /// The agent is closed.
    #[error("{to} is closed and takes no mail: list_agents shows who is there")]
    Closed {
        /// Which agent.
        to: AgentPath,
    },
    /// There are no words.
    #[error("the {} must not be empty: say what the recipient should know or do", word(*.0))]
    Empty(MailKind),
    /// A child gave the root a task.
    #[error("a follow-up task cannot target /root: use send_message, or say it in your final answer")]
    TaskForRoot,
    /// An agent wrote to itself.
    #[error("{0} cannot send mail to itself: name another agent")]
    ToItself(AgentPath),
}

/// The beginning of a body that is over [`MAX_BODY`], cut at a character boundary; `None` when it fits. The caller
/// puts the whole text into a file and its path into the mail.
pub fn cut_body(body: &str) -> Option<&str> {
    (body.len() > MAX_BODY).then(|| stdx::cut_end(body, MAX_BODY))
}

fn word(kind: MailKind) -> &'static str {
    match kind {
        MailKind::Spawn | MailKind::Followup => "task",
        MailKind::Input => "input",
        MailKind::Message | MailKind::Returned => "message",
        MailKind::Result => "result",
    }
}
