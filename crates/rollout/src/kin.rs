//! Verifies the files of a tree against one another: what one says that another holds, that one holds.
//!
//! Writes that touch two agents are ordered, and the first is synced before the second: a call before its mail, mail
//! before the output that says it is accepted, the end of a task before its result. So whatever a crash or a loss of
//! power leaves, the second is never there without the first. Where it is, a file was lost or shortened.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use protocol::{AgentPath, EffectId, ItemKind, MailId, MailKind, Party, ThreadId, TreeId};
use serde::Deserialize;
use stdx::AbsPath;

use crate::{EdgeStatus, Error, Finding, Identity, Line, Record, Rule, SessionMeta, Store};

/// Takes in the files of any number of trees, and compares those of each. It keeps ids, and no line.
#[derive(Default)]
pub struct Kin {
    trees: HashMap<TreeId, Family>,
    /// Agents whose file is there and cannot be read.
    unread: HashSet<ThreadId>,
}

/// What one file says of itself and of others.
#[derive(Default)]
pub struct Member {
    meta: Option<SessionMeta>,
    /// Calls that have no output yet, those that spawn.
    spawning: HashSet<EffectId>,
    mails: Vec<MailId>,
    /// Mail that this agent may have sent.
    sent: Vec<MailId>,
    ended: Vec<MailId>,
    closed: bool,
    claims: Vec<Claim>,
}

#[derive(Default)]
struct Family {
    agents: HashSet<ThreadId>,
    mails: HashSet<MailId>,
    sent: HashSet<MailId>,
    ended: HashSet<MailId>,
    /// The root is closed: what is owed may have nobody left to read it.
    closed: bool,
    claims: Vec<(ThreadId, Claim)>,
}

/// Something that another file has to bear out.
struct Claim {
    ordinal: u64,
    what: What,
}

enum What {
    /// This agent was spawned.
    Spawned { thread: ThreadId, path: String },
    /// Somebody accepted this mail.
    Accepted(MailId),
    /// As `Accepted`, unless nobody was left who could.
    Paid(MailId),
    /// This agent sent the mail.
    Sender { mail: MailId, thread: ThreadId, path: AgentPath },
    /// This agent has ended the task.
    Ended { task: MailId, thread: ThreadId, path: AgentPath },
}

/// The outputs of `spawn_agent`, `send_message` and `followup_task` that say that it happened.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Output {
    task_name: Option<String>,
    accepted: bool,
    mail: Option<MailId>,
}

impl Member {
    /// Takes in the next line of the file.
    pub fn line(&mut self, line: &Line) {
        let mut claim = |what| self.claims.push(Claim { ordinal: line.ordinal, what });
        match &line.record {
            Record::SessionMeta(meta) => self.meta = Some((**meta).clone()),
            Record::Item(record) if record.copied_from.is_none() => {
                let Some(effect) = record.effect else { return };
                if let Some(call) = record.item.call() {
                    self.sent.push(effect.mail());
                    if call.name == "spawn_agent" {
                        self.spawning.insert(effect);
                    }
                } else if record.item.kind() == ItemKind::Output {
                    let text = record.item.text();
                    let said: Output = serde_json::from_str(&text).unwrap_or_default();
                    if self.spawning.remove(&effect) {
                        if let Some(path) = said.task_name {
                            claim(What::Spawned { thread: effect.thread(), path });
                        }
                    } else if said.accepted && said.mail == Some(effect.mail()) {
                        claim(What::Accepted(effect.mail()));
                    }
                }
            }
            Record::Mail(mail) => {
                self.mails.push(mail.id);
                if mail.kind.is_task() {
                    self.sent.push(mail.id.not_begun());
                }
                let Party::Agent(from) = &mail.from else { return };
                let (thread, path) = (from.thread, from.path.clone());
                match (mail.kind, mail.answers) {
                    (MailKind::Result, Some(task)) => claim(What::Ended { task, thread, path }),
                    (MailKind::Spawn | MailKind::Message | MailKind::Followup, _) if mail.continues.is_none() => {
                        claim(What::Sender { mail: mail.id, thread, path });
                    }
                    _ => {}
                }
            }
            Record::TaskDone(done) => self.ended.push(done.task),
            Record::Sent { mail, .. } => claim(What::Paid(*mail)),
            Record::Edge(edge) if edge.status == EdgeStatus::Closed => self.closed = true,
            _ => {}
        }
    }
}

impl Kin {
    /// Takes in a file; one without a first line is nobody's.
    pub fn add(&mut self, member: Member) {
        let Some(meta) = member.meta else { return };
        let family = self.trees.entry(meta.session_id).or_default();
        family.agents.insert(meta.id);
        family.mails.extend(member.mails);
        family.sent.extend(member.sent);
        family.ended.extend(member.ended);
        family.closed |= member.closed && meta.parent_thread_id.is_none();
        family.claims.extend(member.claims.into_iter().map(|claim| (meta.id, claim)));
    }

    /// The file of this agent is there, and what it says is not known.
    pub fn unread(&mut self, thread: ThreadId) {
        self.unread.insert(thread);
    }

    /// The trees of the files so far.
    pub fn trees(&self) -> impl Iterator<Item = TreeId> + '_ {
        self.trees.keys().copied()
    }

    /// What the files of one tree say of each other that is not so, by the file that says it. An agent whose file is
    /// missing is told of once.
    pub fn findings(&self, tree: TreeId) -> Vec<(ThreadId, Finding)> {
        let Some(family) = self.trees.get(&tree) else { return Vec::new() };
        let named = |thread: &ThreadId| {
            let names = |claim: &Claim| claim.what.agent().is_some_and(|(agent, _)| agent == *thread);
            *thread == tree.root() || family.claims.iter().any(|(_, claim)| names(claim))
        };
        // What is missed may stand in a file of this tree that cannot be read.
        let blind = self.unread.iter().any(named);
        let mut missing = HashSet::new();
        let mut findings = Vec::new();
        for (file, Claim { ordinal, what }) in &family.claims {
            let is_there = |thread: &ThreadId| family.agents.contains(thread) || self.unread.contains(thread);
            let gone = what.agent().filter(|(thread, _)| !is_there(thread));
            let text = match gone {
                Some((thread, path)) if missing.insert(thread) => format!(
                    "it names {path}, whose rollout is missing: put back the file whose name ends in {thread}.jsonl"
                ),
                Some(_) => continue,
                None if blind => continue,
                None => match family.lacks(what) {
                    Some(text) => text,
                    None => continue,
                },
            };
            findings.push((*file, Finding { ordinal: *ordinal, rule: Rule::Kept, text }));
        }
        findings
    }
}

impl Store {
    /// Reads all files of a tree and tells what they say of each other that is not so, by the file that says it. Asked
    /// while somebody drives the tree, it may miss what is written meanwhile. Blocks.
    ///
    /// # Errors
    /// When the folder of the sessions cannot be listed, or there is no descriptor to read with.
    pub fn disagreements(&self, tree: TreeId) -> Result<Vec<(AbsPath, Finding)>, Error> {
        let mut kin = Kin::default();
        let mut places = HashMap::new();
        for facts in self.files()?.files {
            match self.identify(&facts)? {
                Identity::Agent(meta) if meta.session_id == tree => {}
                Identity::Agent(_) | Identity::Unborn(_) => continue,
                Identity::Odd(_) => {
                    kin.unread(facts.thread);
                    continue;
                }
            }
            let mut member = Member::default();
            let walked = self.walk(&facts.file, 0, |line| {
                member.line(&line);
                ControlFlow::Continue(())
            });
            match walked {
                Ok(_) => kin.add(member),
                Err(error) if error.is_shortage() => return Err(error),
                Err(_) => kin.unread(facts.thread),
            }
            places.insert(facts.thread, facts.file);
        }
        let findings = kin.findings(tree).into_iter();
        Ok(findings.filter_map(|(thread, finding)| Some((places.get(&thread)?.clone(), finding))).collect())
    }
}

impl Family {
    /// What is not so of a claim, when the agent that it names is there.
    fn lacks(&self, what: &What) -> Option<String> {
        match what {
            What::Spawned { .. } => None,
            What::Accepted(mail) if !self.mails.contains(mail) => {
                Some(format!("mail {mail} was accepted, and no rollout of the tree holds it"))
            }
            What::Paid(mail) if !self.closed && !self.mails.contains(mail) => {
                Some(format!("mail {mail} was accepted, and no rollout of the tree holds it"))
            }
            What::Sender { mail, path, .. } if !self.sent.contains(mail) => {
                Some(format!("mail {mail} came from {path}, whose rollout has no call that sent it"))
            }
            What::Ended { task, path, .. } if !self.ended.contains(task) => {
                Some(format!("{path} answered the task {task}, and its rollout does not say that it ended"))
            }
            _ => None,
        }
    }
}

impl What {
    /// Whose file has to be there.
    fn agent(&self) -> Option<(ThreadId, &str)> {
        match self {
            Self::Spawned { thread, path } => Some((*thread, path)),
            Self::Sender { thread, path, .. } | Self::Ended { thread, path, .. } => Some((*thread, path.as_str())),
            Self::Accepted(_) | Self::Paid(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
