//! What is measured: names, sizes, and what the same kind of work cost elsewhere.

use std::fmt;
use std::str::FromStr;

/// One row of the table. Its name is what `--only` takes: `exec:50`, `spawn:64/default`, `tree:3x4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// A task that is answered at once.
    Echo,
    /// So many shell calls of `true`, one a reply.
    Exec(usize),
    /// So many calls of `sleep 0.2` in one reply.
    Parallel(usize),
    /// So many children in one reply; each runs one `true` and answers.
    Spawn(usize, Limits),
    /// So many levels below the root, and so many children of each agent above the last level.
    Tree(usize, usize),
    /// So many children in one reply, forked from a session of [`FORKED`] items that comes back; each runs one `true` and
    /// answers.
    Fork(usize),
    /// One more answer from a session of so many items.
    Resume(usize),
    /// [`GAPS`] shell calls of `true`, one a reply, in a session of so many items that comes back.
    Gap(usize),
    /// So many children that have come to an end after [`RESTING`] short calls, all in memory.
    Idle(usize),
    /// Building requests of a conversation of so many items.
    Body(usize, Wire),
    /// A task for one agent of a tree of so many that sleep.
    Wake(usize, Mirror),
    /// One more answer from an agent whose rollout has so many megabytes and a compaction each twenty of them.
    Reopen(usize),
    /// `agent log` of a rollout of so many megabytes.
    Log(usize),
    /// A command that looks at a tree of so many agents.
    Look(Glance, usize, Mirror),
    /// Mail of 64 senders, accepted and synced.
    Mail(To),
}

/// The limits of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limits {
    /// Everybody may run and stay in memory.
    Raised,
    /// As shipped.
    Default,
    /// Everybody may stay in memory, and as many run as shipped: what it has more than `Default` is what rests in memory.
    Resident,
}

/// A command that looks at a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glance {
    /// `agent tree`.
    Show,
    /// `agent list`.
    List,
    /// `agent resume` with nothing to do: it becomes the owner, says how each agent stands, and lets go.
    Takeover,
}

/// Whether the mirror is there when a command looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mirror {
    There,
    Lost,
}

/// Who gets the mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    One,
    Each,
}

/// The form that a request is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Responses,
    Chat,
    Messages,
    /// The bytes of the items one after the other: what a body costs at the least that is one piece of memory.
    Copy,
}

impl Wire {
    const ALL: [Self; 4] = [Self::Responses, Self::Chat, Self::Messages, Self::Copy];

    fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Copy => "copy",
        }
    }
}

/// Calls of an agent that rests: with its task and its answer they are twenty items.
pub(super) const RESTING: usize = 9;

/// Calls in a session that comes back.
pub(super) const GAPS: usize = 50;

/// Items of a session that is forked.
pub(super) const FORKED: usize = 2_000;

/// Most children, calls, items or agents of a scenario: more is a typing error.
const MAX_SIZE: usize = 10_000;

/// What is measured when nothing is named.
pub(super) fn all() -> Vec<Scenario> {
    let spawns = [4, 16, 64, 200, 1000].into_iter();
    let spawns = spawns.flat_map(|n| [Scenario::Spawn(n, Limits::Raised), Scenario::Spawn(n, Limits::Default)]);
    let mut all =
        vec![Scenario::Echo, Scenario::Exec(50), Scenario::Gap(10), Scenario::Gap(2000), Scenario::Gap(10_000)];
    all.push(Scenario::Parallel(8));
    all.extend(spawns);
    all.push(Scenario::Spawn(1000, Limits::Resident));
    all.extend([Scenario::Fork(4), Scenario::Fork(64)]);
    all.extend([
        Scenario::Tree(3, 4),
        Scenario::Resume(2000),
        Scenario::Reopen(100),
        Scenario::Reopen(1000),
        Scenario::Log(100),
    ]);
    let glances = [Glance::Show, Glance::List, Glance::Takeover];
    all.extend(
        glances
            .into_iter()
            .flat_map(|what| [Mirror::There, Mirror::Lost].map(|mirror| Scenario::Look(what, 1000, mirror))),
    );
    all.push(Scenario::Idle(400));
    let sizes = [10, 2000, 10_000].into_iter();
    all.extend(sizes.flat_map(|items| Wire::ALL.map(|wire| Scenario::Body(items, wire))));
    all.extend([Mirror::There, Mirror::Lost].map(|mirror| Scenario::Wake(1000, mirror)));
    all.extend([Scenario::Mail(To::One), Scenario::Mail(To::Each)]);
    all
}

/// The scenarios that `names` mean: `spawn:7` is that one, `spawn` all of that kind.
///
/// # Errors
/// One sentence about the first name that means nothing.
pub(super) fn chosen(names: &[String]) -> Result<Vec<Scenario>, String> {
    if names.is_empty() {
        return Ok(all());
    }
    let mut chosen = Vec::new();
    for name in names {
        let kind: Vec<_> = all().into_iter().filter(|one| one.to_string().split(':').next() == Some(name)).collect();
        if kind.is_empty() {
            chosen.push(name.parse()?);
        } else {
            chosen.extend(kind);
        }
    }
    Ok(chosen)
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Echo => f.write_str("echo"),
            Self::Exec(calls) => write!(f, "exec:{calls}"),
            Self::Parallel(calls) => write!(f, "parallel:{calls}"),
            Self::Spawn(agents, Limits::Raised) => write!(f, "spawn:{agents}"),
            Self::Spawn(agents, Limits::Default) => write!(f, "spawn:{agents}/default"),
            Self::Spawn(agents, Limits::Resident) => write!(f, "spawn:{agents}/resident"),
            Self::Tree(depth, breadth) => write!(f, "tree:{depth}x{breadth}"),
            Self::Fork(children) => write!(f, "fork:{children}"),
            Self::Resume(items) => write!(f, "resume:{items}"),
            Self::Gap(items) => write!(f, "gap:{items}"),
            Self::Idle(agents) => write!(f, "idle:{agents}"),
            Self::Body(items, wire) => write!(f, "body:{items}/{}", wire.name()),
            Self::Wake(agents, mirror) => write!(f, "wake:{agents}{}", mirror.suffix()),
            Self::Reopen(megabytes) => write!(f, "reopen:{megabytes}"),
            Self::Log(megabytes) => write!(f, "log:{megabytes}"),
            Self::Look(what, agents, mirror) => {
                write!(f, "{}:{agents}{}", what.name(), mirror.suffix())
            }
            Self::Mail(To::One) => f.write_str("mail:one"),
            Self::Mail(To::Each) => f.write_str("mail:each"),
        }
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let unknown = || {
            let known: Vec<_> = all().iter().map(Self::to_string).collect();
            format!("there is no scenario `{name}`; there are {}, and other sizes of them", known.join(", "))
        };
        let size = |text: &str| {
            let size: usize = text.parse().map_err(|_| unknown())?;
            let fits = (1..=MAX_SIZE).contains(&size);
            fits.then_some(size).ok_or_else(|| format!("`{name}`: a size is from 1 to {MAX_SIZE}"))
        };
        let (kind, rest) = name.split_once(':').unwrap_or((name, ""));
        let (number, variant) = rest.split_once('/').unwrap_or((rest, ""));
        Ok(match (kind, variant) {
            ("echo", "") if rest.is_empty() => Self::Echo,
            ("exec", "") => Self::Exec(size(number)?),
            ("fork", "") => Self::Fork(size(number)?),
            ("parallel", "") => Self::Parallel(size(number)?),
            ("spawn", "") => Self::Spawn(size(number)?, Limits::Raised),
            ("spawn", "default") => Self::Spawn(size(number)?, Limits::Default),
            ("spawn", "resident") => Self::Spawn(size(number)?, Limits::Resident),
            ("tree", "") => {
                let (depth, breadth) = number.split_once('x').ok_or_else(unknown)?;
                let (depth, breadth) = (size(depth)?, size(breadth)?);
                let tree = Self::Tree(depth, breadth);
                if depth > protocol::MAX_DEPTH_HARD || tree.agents() > MAX_SIZE {
                    return Err(format!("`{name}` is deeper than a tree may be, or has more than {MAX_SIZE} agents"));
                }
                tree
            }
            ("resume", "") => Self::Resume(size(number)?),
            ("gap", "") => Self::Gap(size(number)?),
            ("idle", "") => Self::Idle(size(number)?),
            ("body", _) => {
                let wire = Wire::ALL.into_iter().find(|wire| wire.name() == variant).ok_or_else(unknown)?;
                Self::Body(size(number)?, wire)
            }
            ("wake", "" | "lost") => Self::Wake(size(number)?, Mirror::of(variant)),
            ("reopen", "") => Self::Reopen(size(number)?),
            ("log", "") => Self::Log(size(number)?),
            ("show" | "list" | "takeover", "" | "lost") => {
                let all = [Glance::Show, Glance::List, Glance::Takeover];
                let what = all.into_iter().find(|what| what.name() == kind).ok_or_else(unknown)?;
                Self::Look(what, size(number)?, Mirror::of(variant))
            }
            ("mail", "") if number == "one" => Self::Mail(To::One),
            ("mail", "") if number == "each" => Self::Mail(To::Each),
            _ => return Err(unknown()),
        })
    }
}

impl Mirror {
    /// What follows a scenario's name.
    fn suffix(self) -> &'static str {
        match self {
            Self::There => "",
            Self::Lost => "/lost",
        }
    }

    fn of(variant: &str) -> Self {
        if variant == "lost" { Self::Lost } else { Self::There }
    }
}

impl Glance {
    fn name(self) -> &'static str {
        match self {
            Self::Show => "show",
            Self::List => "list",
            Self::Takeover => "takeover",
        }
    }
}

impl Scenario {
    /// Agents of its tree, the root included.
    pub(super) fn agents(self) -> usize {
        match self {
            Self::Spawn(children, _) | Self::Idle(children) | Self::Fork(children) => children + 1,
            Self::Tree(depth, breadth) => (0..=u32::try_from(depth).unwrap_or(u32::MAX))
                .fold(0, |sum: usize, level| sum.saturating_add(breadth.saturating_pow(level))),
            Self::Look(_, agents, _) | Self::Wake(agents, _) => agents,
            Self::Echo
            | Self::Exec(_)
            | Self::Parallel(_)
            | Self::Resume(_)
            | Self::Gap(_)
            | Self::Reopen(_)
            | Self::Log(_)
            | Self::Body(..)
            | Self::Mail(_) => 1,
        }
    }

    /// Shell calls that its agents make.
    pub(super) fn calls(self) -> usize {
        match self {
            Self::Exec(calls) | Self::Parallel(calls) | Self::Spawn(calls, _) | Self::Fork(calls) => calls,
            Self::Gap(_) => GAPS,
            Self::Idle(children) => children * RESTING,
            Self::Tree(depth, breadth) => breadth.saturating_pow(u32::try_from(depth).unwrap_or(u32::MAX)),
            _ => 0,
        }
    }

    /// What the wall time is divided by, and the name of one of them.
    pub(super) fn units(self) -> Option<(usize, &'static str)> {
        match self {
            Self::Exec(calls) => Some((calls, "call")),
            Self::Gap(_) => Some((GAPS, "call")),
            Self::Spawn(children, _) | Self::Fork(children) => Some((children, "child")),
            Self::Tree(..) => Some((self.agents() - 1, "child")),
            Self::Look(_, agents, _) => Some((agents, "agent")),
            Self::Log(megabytes) => Some((megabytes, "MB")),
            Self::Mail(_) => Some((super::mail::MAILS, "mail")),
            Self::Body(..) => Some((super::body::REQUESTS, "request")),
            Self::Echo | Self::Idle(_) | Self::Parallel(_) | Self::Resume(_) | Self::Reopen(_) | Self::Wake(..) => None,
        }
    }

    /// Median wall seconds, CPU seconds and MiB of the reference for the same kind of work, measured on 2026-11-30 on
    /// the same machine, with a server on the same machine that plays the model.
    pub(super) fn reference(self) -> Option<&'static str> {
        Some(match self {
            Self::Echo => "0.28 s, CPU 0.34 s, 142 MiB",
            Self::Exec(50) => "4.17 s, CPU 2.96 s, 151 MiB",
            Self::Parallel(8) => "0.64 s, 150 MiB",
            Self::Spawn(4, Limits::Raised) => "0.80 s, CPU 1.06 s, 161 MiB",
            Self::Spawn(16, Limits::Raised) => "1.60 s, CPU 2.46 s, 176 MiB",
            Self::Spawn(64, Limits::Raised) => "4.87 s, CPU 7.70 s, 215 MiB",
            Self::Spawn(16, Limits::Default) => "as shipped, 13 of 16 spawns fail",
            Self::Resume(2000) => "0.35 s, CPU 0.38 s, 152 MiB",
            _ => return None,
        })
    }
}
