//! What the rules are about. Every exception has its reason beside it.

/// Packages of the top floor: they wire everything else and nothing depends on them.
pub(super) const TOP: (u64, &[&str]) = (6, &["agent", "xtask"]);

/// `(package, packages it must not depend on, why)`. The floors alone would allow these arrows.
pub(super) const ABSENCES: &[(&str, &[&str], &str)] = &[
    ("agent-graph", TOKIO, PURE),
    ("budget", TOKIO, PURE),
    ("mailbox", TOKIO, PURE),
    ("patch", TOKIO, PURE),
    ("policy", TOKIO, PURE),
    ("protocol", TOKIO, PURE),
    ("roles", TOKIO, PURE),
    ("shell", TOKIO, PURE),
    (
        "runtime",
        &["config", "exec", "http", "patch", "tools"],
        "one agent sees tools, a model stream, a rollout sink and an approver",
    ),
    ("tui", &["orchestrator", "runtime"], "a face sees `frontend` only"),
    ("acp", &["orchestrator", "runtime"], "a face sees `frontend` only"),
    ("app-server", &["orchestrator", "runtime"], "a face sees `frontend` only"),
];

const TOKIO: &[&str] = &["tokio"];
const PURE: &str = "its rules are pure: no clock, no I/O, no runtime";

/// `(package, why)`: must not be in `Cargo.lock`.
pub(super) const BANNED: &[(&str, &str)] = &[
    ("aws-lc-sys", "its C code costs minutes to build; TLS is rustls with ring"),
    ("libgit2-sys", "vendored C; run `git`"),
    ("onig_sys", "a C regex library; use a feature set with fancy-regex"),
    ("openssl-sys", "needs a library of the system; TLS is rustls with ring"),
];

/// Packages that must be in `Cargo.lock` in one version at most.
pub(super) const SINGLE: &[(&str, &str)] = &[("rustls", "two would install two sets of roots and two providers")];

/// Most lines of a source file, without its tests: what fits in the head.
pub(super) const MAX_LINES: usize = 500;

/// Most lines of a source file, its tests included; also of a file of tests.
pub(super) const MAX_LINES_WITH_TESTS: usize = 800;

/// `(file, reason)`: files that may be longer.
pub(super) const LONG: &[(&str, &str)] = &[];

/// Folders of the root that exist on a developer's machine only; an absolute path below one works nowhere else.
pub(super) const MACHINE_FOLDERS: &[&str] = &["home", "work", "Users"];

/// Endings of files whose text is checked.
pub(super) const TEXT: &[&str] = &["rs", "md", "toml", "json", "jsonl", "sh", "py", "txt", "yml"];

/// Folders that hold nothing of ours.
pub(super) const SKIPPED: &[&str] = &["target", "node_modules"];

/// Hidden folders that hold something of ours; the others do not.
pub(super) const HIDDEN: &[&str] = &[".cargo", ".ci"];
