//! `cargo xtask bench`: what the program itself costs, with a script in the model's place.
//!
//! Figures are printed and written down, never asserted: no run is a test. Needs the Rust toolchain and Linux.

mod body;
mod home;
mod machine;
mod mail;
mod measure;
mod scenario;
mod script;
mod stats;
mod table;
mod verify;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use tempfile::TempDir;

use measure::{Folders, Printed, Sample};
use scenario::{Glance, Limits, Mirror, Scenario};
use table::Row;
use verify::Expected;

/// Where the figures stand.
const PAGE: &str = "docs/BENCHMARKS.md";

/// Measures the program; the results are a Markdown table.
#[derive(clap::Args)]
pub(crate) struct Bench {
    /// Only these, for example `echo,spawn:64,mail`; other sizes than the usual ones are fine
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Runs of each; the median counts
    #[arg(short = 'n', value_name = "RUNS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Put all figures into docs/BENCHMARKS.md
    #[arg(long, conflicts_with = "only")]
    write: bool,
    /// Measure this program instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Before each run wait so many seconds at the most until others use less than a quarter of a core
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    calm: u64,
}

/// Does what the command line says.
pub(crate) fn bench(root: &Path, args: &Bench) -> Result<ExitCode> {
    let chosen = scenario::chosen(&args.only).map_err(|error| anyhow!(error))?;
    let release = release_folder()?;
    if cfg!(debug_assertions) {
        // Part of the work is done in this process, so it has to be as fast as the program.
        build(root, "xtask")?;
        return again(&release.join("xtask"));
    }
    let binary = if let Some(binary) = &args.binary {
        binary.canonicalize().with_context(|| format!("there is no {}", binary.display()))?
    } else {
        build(root, "agent")?;
        release.join("agent")
    };
    let tokio = tokio::runtime::Builder::new_multi_thread().build()?;
    let scratch = tempfile::tempdir()?;
    let about = about(root, scratch.path(), args);
    let mut rows = Vec::new();
    for one in chosen {
        let samples = tokio.block_on(samples(&binary, one, args)).with_context(|| one.to_string())?;
        let row = Row { name: one.to_string(), samples, units: one.units(), reference: one.reference() };
        // For whoever waits; the whole of it follows.
        write!(
            std::io::stderr().lock(),
            "{}",
            table::table(std::slice::from_ref(&row)).lines().last().unwrap_or_default()
        )?;
        writeln!(std::io::stderr().lock())?;
        rows.push(row);
    }
    let figures = format!("{about}\n\n{}", table::table(&rows));
    writeln!(std::io::stdout().lock(), "{figures}")?;
    if args.write {
        let page = root.join(PAGE);
        let text = fs::read_to_string(&page).with_context(|| format!("cannot read {PAGE}"))?;
        let text = table::put(&text, &figures).with_context(|| format!("{PAGE} has lost its markers"))?;
        fs::write(&page, text).with_context(|| format!("cannot write {PAGE}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All runs of one scenario.
async fn samples(binary: &Path, one: Scenario, args: &Bench) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let mut kept: Option<TempDir> = None;
    for _ in 0..args.runs {
        // A home to which nothing is added is made once; everything else starts from nothing.
        let folder = match kept.take() {
            Some(folder) if one.adds_nothing() => folder,
            _ => prepare(binary, one).await?,
        };
        if let Scenario::Look(.., Mirror::Lost) | Scenario::Wake(_, Mirror::Lost) | Scenario::Reopen(_) = one {
            lose_mirror(&folder.path().join("home"))?;
        }
        machine::calm(Duration::from_secs(args.calm))?;
        samples.push(match one {
            Scenario::Idle(agents) => idle(binary, agents, folder.path()).await?,
            _ => sample(binary, one, folder.path()).await?,
        });
        kept = Some(folder);
    }
    Ok(samples)
}

/// A folder for one run, with the home in it that the scenario starts from.
async fn prepare(binary: &Path, one: Scenario) -> Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("bench-").tempdir()?;
    let (home, work) = (folder.path().join("home"), folder.path().join("work"));
    for made in [&home, &work] {
        fs::create_dir(made)?;
    }
    match one {
        Scenario::Resume(items) | Scenario::Gap(items) => home::items(&home, &work, items).await?,
        Scenario::Fork(_) => home::items(&home, &work, scenario::FORKED).await?,
        Scenario::Reopen(megabytes) => home::lives(&home, &work, megabytes).await?,
        Scenario::Log(megabytes) => home::megabytes(&home, &work, megabytes).await?,
        Scenario::Look(_, agents, _) | Scenario::Wake(agents, _) => home::agents(&home, &work, agents).await?,
        _ => {}
    }
    fs::write(folder.path().join("model.toml"), script::script(one))?;
    if let Scenario::Look(_, agents, _) | Scenario::Wake(agents, _) = one {
        // Their results lie in files that nobody has paid yet: the first owner delivers them and the second finds all
        // at rest, which is how a tree is found that a command has left.
        let takeover = Scenario::Look(Glance::Takeover, agents, Mirror::There);
        for _ in 0..2 {
            sample(binary, takeover, folder.path()).await?;
        }
    }
    Ok(folder)
}

/// One run with so many agents and one with a quarter of them: what the first peak has more than the second, without what
/// the first histories have more, is divided by the agents that it has more.
async fn idle(binary: &Path, agents: usize, folder: &Path) -> Result<Sample> {
    let few = agents.div_ceil(4);
    ensure!(few < agents, "too few agents to compare");
    let less = prepare(binary, Scenario::Idle(few)).await?;
    let many = sample(binary, Scenario::Idle(agents), folder).await?;
    let some = sample(binary, Scenario::Idle(few), less.path()).await?;
    let history = |folder: &Path| verify::history(&folder.join("home"));
    let histories = history(folder)?.saturating_sub(history(less.path())?);
    let peaks = (many.peak.unwrap_or_default() - some.peak.unwrap_or_default()) * 1024.0;
    let resting = (peaks - table::as_f64(histories) / 1024.0) / table::as_f64(agents - few);
    Ok(Sample { resting: Some(resting), ..many })
}

/// Removes the mirror of a home, as anybody may.
fn lose_mirror(home: &Path) -> Result<()> {
    for entry in fs::read_dir(home)? {
        let file = entry?.path();
        if file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("state.sqlite")) {
            fs::remove_file(file)?;
        }
    }
    Ok(())
}

/// One run, and whether it did all of its work.
async fn sample(binary: &Path, one: Scenario, folder: &Path) -> Result<Sample> {
    let (home, work) = (folder.join("home"), folder.join("work"));
    if let Scenario::Mail(to) = one {
        return mail::run(&home, &work, to).await;
    }
    if let Scenario::Body(items, wire) = one {
        return body::run(&work, items, wire);
    }
    let model = format!("script:{}", folder.join("model.toml").display());
    let folders = Folders { home: &home, work: &work, scratch: folder };
    let began = stdx::now();
    let stood = rollouts(&home)?;
    let (mut sample, printed) = measure::run(binary, &arguments(one, model), folders)?;
    let Printed { bytes, tail } = printed;
    match one {
        Scenario::Log(megabytes) => ensure!(bytes > megabytes * 900_000, "it printed {bytes} bytes only"),
        Scenario::Look(Glance::List, agents, _) => {
            ensure!(tail.contains(&format!("{agents} agents")), "it printed: {tail}");
        }
        Scenario::Look(_, agents, _) => ensure!(tail.lines().count() >= agents, "it printed: {tail}"),
        _ => {
            ensure!(tail.trim_end() == script::ANSWER, "it answered: {tail}");
            let (agents, calls) = (one.agents(), one.calls());
            let comes_back =
                matches!(one, Scenario::Resume(_) | Scenario::Reopen(_) | Scenario::Wake(..) | Scenario::Gap(_));
            let asked = verify::verify(&home, Expected { agents, calls, results: agents - 1 })?;
            let asked = asked.filter(|_| comes_back).and_then(|asked| u64::try_from(asked.millis_since(began)).ok());
            if let Scenario::Fork(_) = one {
                sample.written = Some(table::as_f64(rollouts(&home)?.saturating_sub(stood)));
            }
            sample.first = asked.map(|asked| Duration::from_millis(asked).as_secs_f64());
        }
    }
    Ok(sample)
}

/// Bytes of all rollouts of a home.
fn rollouts(home: &Path) -> Result<usize> {
    let files = home::store(home)?.files()?.files;
    Ok(usize::try_from(files.iter().map(|facts| facts.bytes).sum::<u64>())?)
}

/// What is given to the program.
fn arguments(one: Scenario, model: String) -> Vec<String> {
    let mut args: Vec<String> = match one {
        Scenario::Log(_) => return ["log", "--last"].map(str::to_owned).into(),
        Scenario::Look(Glance::Show, ..) => return ["tree", "--last"].map(str::to_owned).into(),
        Scenario::Look(Glance::List, ..) => return vec!["list".to_owned()],
        Scenario::Look(Glance::Takeover, ..) => return ["resume", "--last"].map(str::to_owned).into(),
        Scenario::Resume(_) | Scenario::Reopen(_) | Scenario::Gap(_) | Scenario::Fork(_) => vec!["resume".to_owned()],
        Scenario::Wake(..) => ["send", "/root/w1"].map(str::to_owned).into(),
        _ => vec!["run".to_owned()],
    };
    args.extend(["--model".to_owned(), model]);
    if let Scenario::Spawn(_, Limits::Raised) | Scenario::Tree(..) | Scenario::Fork(_) = one {
        let agents = one.agents();
        for set in ["max_running", "max_resident", "max_agents"] {
            args.extend(["-c".to_owned(), format!("{set}={agents}")]);
        }
    }
    if let Scenario::Spawn(_, Limits::Resident) | Scenario::Idle(_) = one {
        for set in ["max_resident", "max_agents"] {
            args.extend(["-c".to_owned(), format!("{set}={}", one.agents())]);
        }
    }
    if let Scenario::Tree(depth, _) = one {
        args.extend(["-c".to_owned(), format!("max_depth={depth}")]);
    }
    args.push("go".to_owned());
    args
}

/// The command, the machine, the day and the version.
fn about(root: &Path, folder: &Path, args: &Bench) -> String {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let built = if args.binary.is_some() { None } else { commit(root) };
    let built =
        built.map_or("the program of --binary".to_owned(), |commit| format!("release build of commit {commit}"));
    format!("Made by `cargo xtask {}` on {}, {built}: {}.", given.join(" "), stdx::now(), machine::describe(folder))
}

/// What git calls the checkout, if there is a git.
#[expect(clippy::disallowed_methods, reason = "only git knows whether files differ from the commit")]
fn commit(root: &Path) -> Option<String> {
    let told = Command::new("git").arg("-C").arg(root).args(["describe", "--always", "--dirty"]).output().ok()?;
    told.status.success().then(|| String::from_utf8_lossy(&told.stdout).trim().to_owned())
}

/// Beside the folder of this program, whichever of the two this one is in.
fn release_folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent).context("this program is in no folder of cargo's")?;
    Ok(target.join("release"))
}

#[expect(clippy::disallowed_methods, reason = "what is measured has to be built")]
fn build(root: &Path, package: &str) -> Result<()> {
    let mut cargo = Command::new("cargo");
    let status = cargo.current_dir(root).args(["build", "--quiet", "--release", "--package", package]).status()?;
    ensure!(status.success(), "cargo could not build {package}");
    Ok(())
}

/// Hands the same command line to the fast build of this program.
#[expect(clippy::disallowed_methods, reason = "the fast build of this very program")]
fn again(program: &Path) -> Result<ExitCode> {
    let status = Command::new(program).args(std::env::args_os().skip(1)).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

impl Scenario {
    fn adds_nothing(self) -> bool {
        // One more turn of a long session is next to nothing.
        matches!(self, Self::Log(_) | Self::Look(..) | Self::Reopen(_))
    }
}

#[cfg(test)]
mod tests;
