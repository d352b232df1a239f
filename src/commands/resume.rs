//! `agent resume`.

use frontend::{Op, Reply, Report};
use protocol::{AgentPath, Outcome, RequestId};

use super::drive::Drive;
use super::remote::{Remote, Spoken, ask, unexpected};
use super::text;
use crate::cli::Resume;
use crate::exit::{self, Failure};
use crate::output;
use crate::reach::{Owned, Patience, Reached, reach};
use crate::render;
use crate::wire::Setting;

pub(super) async fn resume(setting: Setting, args: Resume) -> Result<u8, Failure> {
    let prompt = args.prompt.map(|prompt| text(Some(prompt), "task")).transpose()?;
    let config = setting.config(None)?;
    let options = setting.options(&config, setting.common.model.clone())?;
    if prompt.is_some() || args.go_on {
        setting.store.keep_roots();
    }
    let id = setting.tree()?;
    let request = RequestId::new();
    let (mut told, mut patience, mut again) = (0, Patience::default(), false);
    loop {
        if std::mem::replace(&mut again, true) {
            patience.wait(told).await?;
        }
        match reach(&setting, &options, id).await? {
            Reached::Owner(owned) => return own(&setting, owned, prompt.as_deref(), args.go_on, request).await,
            Reached::Other(client) => {
                if prompt.is_none() && !args.go_on {
                    let Spoken::Done(reply) = ask(&client, Op::Resume).await? else { continue };
                    let Reply::Report(report) = reply else { return Err(unexpected(&reply)) };
                    let Spoken::Done(reply) = ask(&client, Op::Tree).await? else { continue };
                    let Reply::Tree(listing) = reply else { return Err(unexpected(&reply)) };
                    output::note(&format!("tree {id} · driven by process {}", client.hello().pid));
                    for line in render::oddities(&report) {
                        output::note(&line);
                    }
                    show(&setting, &report, &listing)?;
                    return Ok(exit::DONE);
                }
                let mut remote = Remote::new(&setting, client, id, &mut told).await;
                let mut tasks = Vec::new();
                if args.go_on {
                    let Spoken::Done(given) = remote.go_on().await? else { continue };
                    tasks.extend(given.into_iter().map(|given| given.task));
                }
                if let Some(prompt) = &prompt {
                    let root = AgentPath::root();
                    let Spoken::Done(task) = remote.send(&root, prompt, true, (request, None)).await? else { continue };
                    tasks.insert(0, task);
                }
                let Some(task) = tasks.first() else {
                    output::note("nothing was cut off and nothing waits to begin");
                    return Ok(exit::DONE);
                };
                if let Spoken::Done(code) = remote.finish(&setting, *task).await? {
                    return Ok(code);
                }
                output::note("the process that drove the tree let go of it; taking it over");
            }
        }
    }
}

async fn own(
    setting: &Setting,
    owned: Owned,
    prompt: Option<&str>,
    go_on: bool,
    request: RequestId,
) -> Result<u8, Failure> {
    output::note(&format!("tree {}", owned.tree.id()));
    let found = owned.found.clone();
    let drive = Drive::new(setting, owned);
    if prompt.is_none() && !go_on {
        let listing = drive.tree().listing();
        drive.drop_tree().await;
        show(setting, &found, &listing)?;
        return Ok(exit::DONE);
    }
    output::note(render::report(&found).trim_end());
    drive.tree().started(true);
    let begun = async {
        let mut expected = if go_on { drive.tree().go_on().await? } else { Vec::new() };
        if let Some(prompt) = prompt {
            // The prompt's answer is the answer; without one, that of the first task that goes on, the root's first.
            expected.insert(0, drive.give(&AgentPath::root(), prompt, true, (request, None)).await?);
        }
        Ok::<_, Failure>(expected)
    };
    let mut expected = match begun.await {
        Ok(expected) => expected,
        Err(failure) => {
            drive.drop_tree().await;
            return Err(failure);
        }
    };
    if expected.is_empty() {
        if !drive.tree().is_busy() {
            output::note(&nothing(&found));
        }
        return Ok(drive.settle().await);
    }
    Ok(drive.finish(expected.remove(0)).await)
}

/// That there is nothing to go on with; and what does, when somebody was stopped for good.
fn nothing(found: &Report) -> String {
    let stopped = |last: Option<Outcome>| matches!(last, Some(Outcome::OverBudget | Outcome::Interrupted));
    let who = found.agents.iter().find(|agent| stopped(agent.last));
    let more = who.map(|agent| {
        format!(
            "; who was stopped on purpose, by a deadline or by a budget of its own goes on with new words: agent send {} \"…\"",
            agent.path
        )
    });
    format!("nothing was cut off and nothing waits to begin{}", more.unwrap_or_default())
}

/// The report on stdout, or, for programs, the tree there and the report beside it.
fn show(setting: &Setting, report: &Report, listing: &frontend::Listing) -> Result<(), Failure> {
    let stands = render::report(report);
    if setting.common.json {
        output::note(stands.trim_end());
        super::tree::json(listing)
    } else {
        output::answer(&stands);
        if report.agents.iter().any(|agent| agent.cut.in_turn) {
            output::note(
                "what was cut off goes on with: agent resume --continue (and more budget, where that ended it)",
            );
        }
        Ok(())
    }
}
