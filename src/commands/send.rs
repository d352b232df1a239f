//! `agent send`.

use protocol::{AgentPath, RequestId};

use super::drive::Drive;
use super::remote::{Remote, Spoken};
use super::text;
use crate::cli::Send;
use crate::exit::{self, Failure};
use crate::output;
use crate::reach::{Patience, Reached, reach};
use crate::who;
use crate::wire::Setting;

pub(super) async fn send(setting: Setting, args: Send) -> Result<u8, Failure> {
    let path = who::agent(&args.path)?;
    let message = text(Some(args.message), "message")?;
    let config = setting.config(None)?;
    let options = setting.options(&config, setting.common.model.clone())?;
    let id = setting.tree()?;
    // One name for these words, however often owners change under way: sent twice they are one task.
    let request = RequestId::new();
    let words = (request, args.deadline.map(|time| stdx::now().after(time)));
    let wake = !args.queue;
    let (mut told, mut patience) = (0, Patience::default());
    loop {
        match reach(&setting, &options, id).await? {
            Reached::Other(client) => {
                let mut remote = Remote::new(&setting, client, id, &mut told).await;
                let Spoken::Done(task) = remote.send(&path, &message, wake, words).await? else {
                    patience.wait(told).await?;
                    continue;
                };
                if args.queue {
                    return Ok(left(&path));
                }
                if let Spoken::Done(code) = remote.finish(&setting, task).await? {
                    return Ok(code);
                }
                output::note("the process that drove the tree let go of it; taking it over");
            }
            Reached::Owner(owned) => {
                let drive = Drive::new(&setting, owned);
                drive.tree().started(true);
                let pending = match drive.give(&path, &message, wake, words).await {
                    Ok(pending) => pending,
                    Err(failure) => {
                        drive.drop_tree().await;
                        return Err(failure);
                    }
                };
                if args.queue {
                    drive.drop_tree().await;
                    return Ok(left(&path));
                }
                return Ok(drive.finish(pending).await);
            }
        }
    }
}

fn left(path: &AgentPath) -> u8 {
    output::note(&format!("left for {path}; it reads this with its next task"));
    exit::DONE
}
