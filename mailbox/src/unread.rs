//! What waits, counted.

use protocol::MailKind;

/// Mail that has not entered the context, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// First tasks.
    pub spawn: usize,
    /// Messages.
    pub message: usize,
    /// Follow-up tasks.
    pub followup: usize,
    /// Results of tasks that this agent gave.
    pub result: usize,
    /// Mail of this agent that came back.
    pub returned: usize,
    /// Input by a person or program.
    pub input: usize,
}

impl Unread {
    /// All kinds together.
    pub fn total(&self) -> usize {
        self.spawn + self.message + self.followup + self.result + self.returned + self.input
    }

    /// Those of `kind`.
    pub fn of(&self, kind: MailKind) -> usize {
        match kind {
            MailKind::Spawn => self.spawn,
            MailKind::Message => self.message,
            MailKind::Followup => self.followup,
            MailKind::Result => self.result,
            MailKind::Returned => self.returned,
            MailKind::Input => self.input,
        }
    }
}

impl FromIterator<MailKind> for Unread {
    fn from_iter<I: IntoIterator<Item = MailKind>>(kinds: I) -> Self {
        let mut unread = Self::default();
        for kind in kinds {
            *match kind {
                MailKind::Spawn => &mut unread.spawn,
                MailKind::Message => &mut unread.message,
                MailKind::Followup => &mut unread.followup,
                MailKind::Result => &mut unread.result,
                MailKind::Returned => &mut unread.returned,
                MailKind::Input => &mut unread.input,
            } += 1;
        }
        unread
    }
}
