//! How fast mail is accepted: appended to the recipient's rollout and synced, as a sender has to wait for it.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use protocol::{MailKind, Party};
use rollout::Record;
use tokio::task::JoinSet;

use super::home::{Agent, store};
use super::machine::Cpu;
use super::measure::Sample;
use super::scenario::To;

/// Senders that write at the same time.
const SENDERS: usize = 64;
/// Mails of each, one after another: the next is written when the last is on the disk.
const EACH: usize = 20;
/// All mails of a run.
pub(super) const MAILS: usize = SENDERS * EACH;

/// What the body of a mail is like: a sentence or two.
const BODY: &str = "The parser drops the last token of a line that ends in a comment; the test is in place and fails.";

/// One run, in this process.
pub(super) async fn run(home: &Path, work: &Path, to: To) -> Result<Sample> {
    let store = store(home)?;
    let root = Agent::root(work)?;
    let giver = Party::Agent(root.address.clone());
    let mut pairs = Vec::new();
    let mut writers = Vec::new();
    for n in 0..SENDERS {
        let sender = root.child(n)?;
        let recipient = match to {
            To::One => root.clone(),
            To::Each => root.child(SENDERS + n)?,
        };
        if to == To::Each || n == 0 {
            let first = recipient.mail(giver.clone(), MailKind::Spawn, "go");
            writers.push(recipient.create(&store, &first).await?);
        }
        pairs.push((sender, recipient));
    }
    let before = Cpu::now()?;
    let began = Instant::now();
    let mut sending = JoinSet::new();
    for (n, (sender, recipient)) in pairs.into_iter().enumerate() {
        let writer = writers[n % writers.len()].clone();
        sending.spawn(async move {
            for _ in 0..EACH {
                let mail = recipient.mail(Party::Agent(sender.address.clone()), MailKind::Message, BODY);
                writer.append_synced(&[Record::Mail(Box::new(mail))]).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(sent) = sending.join_next().await {
        sent??;
    }
    let wall = began.elapsed().as_secs_f64();
    let after = Cpu::now()?;
    Ok(Sample { cpu: after.own - before.own, others: after.others(before), ..Sample::of(wall) })
}
