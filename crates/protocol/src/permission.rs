//! The names of the permission settings. What they mean is decided and enforced elsewhere.

use serde::{Deserialize, Serialize};

/// How far a command may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// Nothing can be written, no network.
    ReadOnly,
    /// The working folder and the temporary folder can be written, no network.
    WorkspaceWrite,
    /// No sandbox.
    DangerFullAccess,
}

/// When a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approval {
    /// Before everything that is not known to be harmless.
    Untrusted,
    /// When the model asks to go beyond the sandbox.
    OnRequest,
    /// Never.
    Never,
}

impl Sandbox {
    /// The name used on the command line and in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }
}

impl Approval {
    /// The name used on the command line and in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::OnRequest => "on-request",
            Self::Never => "never",
        }
    }
}
