//! A conversation as a script sees it. Computed anew from every request: a script remembers nothing, so a resumed
//! agent gets the replies that an uninterrupted one would have got.

use protocol::{ItemKind, Role};

use crate::ModelRequest;

/// Marks of user messages that are no task. They are part of the rollouts' format.
const NO_TASK: [&str; 4] =
    ["<turn_aborted>", "<agent_mail kind=\"message\"", "<agent_mail kind=\"result\"", "<agent_mail kind=\"returned\""];

/// Marks of what is beside a conversation: where the agent works, and what is left of its budget.
const BESIDE: [&str; 2] = ["<environment_context>", "<budget_reminder>"];

/// A conversation.
#[derive(Debug)]
pub(crate) struct View {
    /// Texts of the items, oldest first, without instructions, environment and budget. Calls and reasoning have an empty one.
    pub(crate) texts: Vec<String>,
    /// The replies that the agent has given.
    pub(crate) replies: u64,
    /// Those since its newest task.
    pub(crate) step: u64,
    /// The words of its first task.
    pub(crate) prompt: String,
    /// The words of its newest task.
    pub(crate) task: String,
}

impl View {
    pub(crate) fn new(request: &ModelRequest) -> Self {
        let mut view = Self { texts: Vec::new(), replies: 0, step: 0, prompt: String::new(), task: String::new() };
        let mut first = true;
        let mut speaking = false;
        for item in request.input.items() {
            let by_model = !matches!(item.kind(), ItemKind::Message(Role::User | Role::Developer) | ItemKind::Output);
            // Items of the model that stand together are one reply.
            if by_model && !speaking {
                view.replies += 1;
                view.step += 1;
            }
            speaking = by_model;
            if item.kind() == ItemKind::Message(Role::Developer) {
                continue;
            }
            let text = item.text();
            if item.kind() == ItemKind::Message(Role::User) {
                let begins = text.trim_start();
                if BESIDE.iter().any(|mark| begins.starts_with(mark)) {
                    continue;
                }
                if !NO_TASK.iter().any(|mark| begins.starts_with(mark)) {
                    view.step = 0;
                    words(&text).clone_into(&mut view.task);
                    if std::mem::take(&mut first) {
                        view.prompt.clone_from(&view.task);
                    }
                }
            }
            view.texts.push(text);
        }
        view
    }

    /// The text of the last item.
    pub(crate) fn last(&self) -> &str {
        self.texts.last().map_or("", String::as_str)
    }
}

/// A text without the marks around it.
pub(crate) fn words(text: &str) -> &str {
    let text = text.trim();
    let inner = || {
        let (tag, body) = text.strip_prefix('<')?.split_once(">\n")?;
        let name = tag.split(' ').next().filter(|name| crate::pattern::is_name(name))?;
        body.strip_suffix('>')?.strip_suffix(name)?.strip_suffix("</")
    };
    inner().map_or(text, str::trim)
}

#[cfg(test)]
mod tests;
