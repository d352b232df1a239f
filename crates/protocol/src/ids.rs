//! Ids. A fresh id is a UUID v7; an id that follows from another is a UUID v5 of it, so that doing a thing
//! twice gives the same id and the second time is a no-op.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A fresh id (UUID v7).
            #[expect(clippy::new_without_default, reason = "a fresh id is not a default value")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            /// The UUID itself.
            pub fn uuid(self) -> Uuid {
                self.0
            }

            /// The first eight hex digits of the random part, for people.
            pub fn short(self) -> String {
                let text = self.0.simple().to_string();
                text.get(24..).unwrap_or(&text).to_owned()
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                Uuid::parse_str(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// One incarnation of an agent: its rollout, its history, its edge.
    ThreadId
}
id! {
    /// A tree of agents; equal to the thread id of its root.
    TreeId
}
id! {
    /// One turn of one agent.
    TurnId
}
id! {
    /// A mail. A task's id is the id of the mail that gave it.
    MailId
}
id! {
    /// Minted when a call is recorded; everything the call brings about derives its id from it.
    EffectId
}
id! {
    /// A client's request (`run`, `send`, `resume PROMPT`).
    RequestId
}
id! {
    /// Marks a process we started; also in its environment.
    Token
}

/// A task is named by the mail that gave it.
pub type TaskId = MailId;

fn derive(from: Uuid, what: &str) -> Uuid {
    Uuid::new_v5(&from, what.as_bytes())
}

impl EffectId {
    /// The id of the mail that this call sends.
    pub fn mail(self) -> MailId {
        MailId(derive(self.0, "mail"))
    }

    /// The thread that this call spawns.
    pub fn thread(self) -> ThreadId {
        ThreadId(derive(self.0, "thread"))
    }
}

impl RequestId {
    /// The id of the mail that carries this request.
    pub fn mail(self) -> MailId {
        MailId(derive(self.0, "mail"))
    }
}

impl MailId {
    /// The id of the one result of this task.
    pub fn result(self) -> Self {
        Self(derive(self.0, "result"))
    }

    /// The id of the mail that returns this one to its sender.
    pub fn returned(self) -> Self {
        Self(derive(self.0, "returned"))
    }

    /// The id of this result when it moves on to an ancestor of a closed giver.
    pub fn forwarded(self) -> Self {
        Self(derive(self.0, "forwarded"))
    }

    /// The id of the word to its giver that this task was not begun, because its agent could not be loaded.
    pub fn not_begun(self) -> Self {
        Self(derive(self.0, "not begun"))
    }

    /// The id of the `n`-th task (from 1) that goes on with this one after a crash.
    pub fn continued(self, n: u32) -> Self {
        Self(derive(self.0, &format!("continue:{n}")))
    }
}

/// A UUID v5 of a text: tells one text from another in few bytes.
pub fn digest(text: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
}

impl From<ThreadId> for TreeId {
    fn from(root: ThreadId) -> Self {
        Self(root.0)
    }
}

impl TreeId {
    /// The thread of the tree's root.
    pub fn root(self) -> ThreadId {
        ThreadId(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These bytes are in rollouts: they may never change.
    #[test]
    fn derived_ids_are_frozen() {
        let effect: EffectId = "01939d5e-0000-7000-8000-000000000001".parse().unwrap();
        let seen = [
            effect.mail().to_string(),
            effect.thread().to_string(),
            effect.mail().result().to_string(),
            effect.mail().returned().to_string(),
            effect.mail().result().forwarded().to_string(),
            effect.mail().continued(1).to_string(),
        ];
        expect_test::expect![[r#"
            c9d0ff7b-230b-5a34-a4e1-2773b87e27b9
            0a979f9f-485c-50b4-9a7b-e1143d7b97c9
            42e076bb-b66c-5809-9001-8b97fae4dab0
            f39e7f63-1349-5e3c-b347-e9dcaee2d37a
            6cd15f13-5782-57c6-af62-d220c61256c9
            5661585c-e2d3-50b8-90e9-12c79b477251
        "#]]
        .assert_eq(&(seen.join("\n") + "\n"));
    }
}
