//! Where a process is killed, or its disk fails, as a word that crosses to the process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use testkit::{Act, FaultDisk, On, Op, When};

/// One place to be killed at. The default is: before the first effect of any kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Only effects of this kind; by the name of its [`Op`].
    op: Option<String>,
    /// Only writes with these bytes.
    bytes: Option<String>,
    /// Which of them, from 1.
    n: usize,
    /// Where in it.
    when: u8,
    /// What happens there.
    blow: Blow,
    /// Whether it happens at all that follow as well.
    lasting: bool,
}

/// What happens at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Blow {
    /// The process is killed.
    Kill,
    /// What was not synced is lost with the process.
    Power,
    /// The disk is full. In the middle of a write: it is short.
    Full,
    /// The device fails.
    Broken,
    /// The effect takes a while.
    Slow,
}

/// How long a slow effect takes.
const SLOW: Duration = Duration::from_millis(400);

/// What the process that a test starts is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub args: Vec<String>,
    pub point: Option<Point>,
    /// Where to leave its effects, when it lives to the end.
    pub account: String,
}

/// An effect that took place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// The name of its [`Op`].
    pub op: String,
    pub path: PathBuf,
}

impl Seen {
    pub(crate) fn is(&self, op: Op) -> bool {
        self.op == format!("{op:?}")
    }
}

const OPS: [Op; 10] = [
    Op::Create,
    Op::Open,
    Op::Write,
    Op::Overwrite,
    Op::Sync,
    Op::SetLen,
    Op::CreateDir,
    Op::SyncDir,
    Op::Rename,
    Op::Remove,
];

const WHENS: [When; 3] = [When::Before, When::Middle, When::After];

/// The `n`-th effect of whatever kind.
pub(crate) fn any(n: usize) -> Point {
    Point { op: None, bytes: None, n, when: 0, blow: Blow::Kill, lasting: false }
}

/// The `n`-th effect of this kind.
pub(crate) fn op(op: Op, n: usize) -> Point {
    Point { op: Some(format!("{op:?}")), ..any(n) }
}

/// The `n`-th write of a line of this type.
pub(crate) fn line(kind: &str, n: usize) -> Point {
    bytes(&format!(r#""type":"{kind}""#), n)
}

/// The `n`-th call of this tool.
pub(crate) fn call(tool: &str, n: usize) -> Point {
    bytes(&format!(r#""name":"{tool}""#), n)
}

/// The `n`-th mail of this kind that is accepted; of a spawn that is the child's file.
pub(crate) fn mail(kind: &str, n: usize) -> Point {
    bytes(&format!(r#""kind":"{kind}""#), n)
}

/// The `n`-th write that holds `part`.
pub(crate) fn bytes(part: &str, n: usize) -> Point {
    Point { bytes: Some(part.to_owned()), ..op(Op::Write, n) }
}

impl Point {
    /// Once before it, once in the middle, once after it.
    pub(crate) fn all(self) -> [Self; 3] {
        [0, 1, 2].map(|when| Self { when, ..self.clone() })
    }

    /// This far into the effect: 0 is before, 1 in the middle, 2 after it.
    pub(crate) fn when(self, when: usize) -> Self {
        Self { when: (when % WHENS.len()) as u8, ..self }
    }

    /// With a loss of power.
    pub(crate) fn power(self) -> Self {
        self.with(Blow::Power)
    }

    /// With this in place of a kill.
    pub(crate) fn with(self, blow: Blow) -> Self {
        Self { blow, ..self }
    }

    /// There and at all that follow.
    pub(crate) fn for_good(self) -> Self {
        Self { lasting: true, ..self }
    }

    /// Whether it takes unsynced bytes with it.
    pub(crate) fn loses_power(&self) -> bool {
        self.blow == Blow::Power
    }

    /// Whether the disk refuses something, and the process lives on with that.
    pub(crate) fn fails(&self) -> bool {
        matches!(self.blow, Blow::Full | Blow::Broken)
    }

    fn arm(&self, disk: &FaultDisk) {
        let known = |name: &str| OPS.into_iter().find(|op| format!("{op:?}") == name);
        let on = match &self.op {
            Some(name) => On::op(known(name).unwrap()),
            None => On::any(),
        };
        let on = self.bytes.iter().fold(on, On::bytes);
        let act = match self.blow {
            Blow::Kill => Act::Kill,
            Blow::Power => Act::PowerLoss,
            Blow::Full => Act::Full,
            Blow::Broken => Act::Broken,
            Blow::Slow => Act::Call(Arc::new(|| std::thread::sleep(SLOW))),
        };
        let when = WHENS[usize::from(self.when)];
        if self.lasting { disk.from(on, self.n, when, act) } else { disk.at(on, self.n, when, act) }
    }
}

/// What [`testkit::child_value`] asks of this process: the command, on a disk that kills it. Does not come back.
#[expect(clippy::disallowed_methods, reason = "the exit code of the command is what the parent process looks at")]
pub(crate) fn carry_out(word: &str) -> ! {
    let plan: Plan = serde_json::from_str(word).unwrap();
    let disk = FaultDisk::new();
    if let Some(point) = &plan.point {
        point.arm(&disk);
    }
    let args = std::iter::once("agent".to_owned()).chain(plan.args).map(Into::into);
    let code = agent::run(args, Arc::new(disk.clone()));
    let seen = disk.effects().into_iter().map(|effect| Seen { op: format!("{:?}", effect.op), path: effect.path });
    std::fs::write(plan.account, serde_json::to_string(&seen.collect::<Vec<_>>()).unwrap()).unwrap();
    std::process::exit(code.into());
}
