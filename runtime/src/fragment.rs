//! Everything that the program itself puts into a context. Nothing else may.
//!
//! A fragment is `begin marker + body + end marker`. Markers are part of the file format: rollouts hold them.

use budget::Standing;
use mailbox::MAX_BODY;
use protocol::{Approval, Item, ItemKind, Mail, MailKind, Role, Sandbox};
use stdx::{AbsPath, cut_end};

/// A piece of context that the program renders.
pub trait ContextFragment {
    /// Who it speaks as.
    const ROLE: Role;
    /// What it begins with; empty for a one-off notice that nobody needs to recognise.
    const BEGIN: &'static str;
    /// What it ends with.
    const END: &'static str;
    /// The most bytes its body may have; four bytes count as a token.
    const CAP: usize;

    /// The text between the markers.
    fn body(&self) -> String;

    /// The item as it enters the context.
    fn item(&self) -> Item {
        let body = self.body();
        Item::message(Self::ROLE, &format!("{}{}{}", Self::BEGIN, cut_end(&body, Self::CAP), Self::END))
    }
}

/// Who the agent is and how it should work: the first item of every context.
pub struct Instructions {
    /// The whole text.
    pub text: String,
}

impl ContextFragment for Instructions {
    const ROLE: Role = Role::Developer;
    const BEGIN: &'static str = "";
    const END: &'static str = "";
    /// About 8,000 tokens. Over the 1,000 that a new kind should keep to, because these are the instructions
    /// themselves: everything else depends on them.
    const CAP: usize = 32_000;

    fn body(&self) -> String {
        self.text.clone()
    }
}

/// Where the agent works and what it may do: the second item of every context.
pub struct Environment {
    /// Working folder.
    pub cwd: AbsPath,
    /// How far commands may reach.
    pub sandbox: Sandbox,
    /// When a person is asked.
    pub approval: Approval,
    /// The shell that runs commands.
    pub shell: String,
    /// Today, as `YYYY-MM-DD` in UTC.
    pub date: String,
}

impl ContextFragment for Environment {
    const ROLE: Role = Role::User;
    const BEGIN: &'static str = "<environment_context>\n";
    const END: &'static str = "</environment_context>";
    const CAP: usize = 4_000;

    fn body(&self) -> String {
        let reach = match self.sandbox {
            Sandbox::DangerFullAccess => "commands run unsandboxed, with everything the user may do",
            Sandbox::WorkspaceWrite => "commands may write below the working folder only, and have no network",
            Sandbox::ReadOnly => "commands may write nothing, and have no network",
        };
        format!(
            "cwd: {}\nshell: {}\ndate: {}\nsandbox: {} ({reach})\napproval: {}\n",
            self.cwd,
            self.shell,
            self.date,
            self.sandbox.as_str(),
            self.approval.as_str(),
        )
    }
}

/// Mail of another agent. The same on every wire.
pub struct MailNote<'a>(pub &'a Mail);

impl ContextFragment for MailNote<'_> {
    const ROLE: Role = Role::User;
    const BEGIN: &'static str = "<agent_mail ";
    const END: &'static str = "\n</agent_mail>";
    /// A body is cut to [`MAX_BODY`] when it is accepted; the rest is for the heading and the pointer.
    const CAP: usize = MAX_BODY + 2_000;

    fn body(&self) -> String {
        let mail = self.0;
        let mut text = format!("kind=\"{}\" from=\"{}\" id=\"{}\"", mail.kind.as_str(), mail.from.name(), mail.id);
        if let Some(outcome) = mail.outcome {
            text += &format!(" outcome=\"{outcome}\"");
        }
        if let Some(answers) = mail.answers {
            text += &format!(" answers=\"{answers}\"");
        }
        text += ">\n";
        text += &mail.body;
        if let Some(whole) = &mail.whole {
            text += &format!("\n[cut here; the whole text is in {whole}]");
        }
        text += &deadline(mail);
        text
    }
}

/// The turn was interrupted; stands where it broke off.
pub struct TurnAborted;

impl ContextFragment for TurnAborted {
    const ROLE: Role = Role::User;
    const BEGIN: &'static str = "<turn_aborted>\n";
    const END: &'static str = "\n</turn_aborted>";
    const CAP: usize = 1_000;

    fn body(&self) -> String {
        "The previous turn was interrupted on purpose. Tools that were running may have done part of their work, and \
         commands they started may still run: look before you repeat anything."
            .to_owned()
    }
}

/// How much of a budget is left; stands before the first request that is sent with less than a level.
pub struct BudgetReminder {
    /// Less than this many percent are left.
    pub level: u8,
    /// How the budget stands.
    pub standing: Standing,
}

/// What the body of a [`BudgetReminder`] begins with; the level follows.
const LESS_THAN: &str = "Less than ";

impl ContextFragment for BudgetReminder {
    const ROLE: Role = Role::User;
    const BEGIN: &'static str = "<budget_reminder>\n";
    const END: &'static str = "\n</budget_reminder>";
    const CAP: usize = 1_000;

    fn body(&self) -> String {
        let Standing { scope, used, .. } = &self.standing;
        format!(
            "{LESS_THAN}{} % of the budget of {scope} is left: {used}. A request that goes beyond it is not sent and \
             ends your turn, so do what matters most first, and give your result while you can.",
            self.level
        )
    }
}

impl BudgetReminder {
    /// The level of a reminder that stands in a context; none of any other item.
    pub fn level(item: &Item) -> Option<u8> {
        if item.kind() != ItemKind::Message(Self::ROLE) {
            return None;
        }
        let text = item.text();
        let words = text.strip_prefix(Self::BEGIN)?.strip_prefix(LESS_THAN)?;
        words.split_once(' ')?.0.parse().ok()
    }
}

/// How a mail enters its recipient's context: a first task and a person's words are a plain user message, so that
/// every provider's model takes them as its task; anything else is a note that names kind, sender and id.
pub fn task_or_note(mail: &Mail) -> Item {
    match mail.kind {
        MailKind::Spawn | MailKind::Input => {
            let pointer = mail.whole.as_ref().map(|whole| format!("\n[cut here; the whole text is in {whole}]"));
            let text = format!("{}{}{}", mail.body, pointer.unwrap_or_default(), deadline(mail));
            Item::message(Role::User, &text)
        }
        MailKind::Message | MailKind::Followup | MailKind::Result | MailKind::Returned => MailNote(mail).item(),
    }
}

/// What tells an agent when its task ends; nothing when that is open.
fn deadline(mail: &Mail) -> String {
    let line = |at| {
        format!(
            "\n[deadline: {at}, now it is {}. What you have said by then is your result: say it in time.]",
            stdx::now()
        )
    };
    mail.deadline.map(line).unwrap_or_default()
}
