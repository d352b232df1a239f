//! Every agent there is: from its row where that can be believed, from its file everywhere else.

use std::collections::{HashMap, HashSet};

use protocol::{ThreadId, TreeId};
use rollout::{Error, FileFacts, Files, Identity, Problem, SessionMeta, Store, Summary, Unborn, is_packed};

use crate::change::{Change, Mark};
use crate::gone::gone;
use crate::rows::{Stored, Wanted};
use crate::side::by_side;
use crate::{Mirror, Trouble};

/// All agents, or those of one tree, as their rollouts have them at this moment.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Them. Of one tree: parents before children, siblings as they were spawned. Of all: by file name.
    pub agents: Vec<Known>,
    /// Files whose agent never existed. Of one tree: those that say so, and those that broke off before they could say
    /// whose they are.
    pub unborn: Vec<Unborn>,
    /// Files and folders that were passed over, of whatever tree; and rollouts of the trees listed here that were there
    /// and are gone.
    pub problems: Vec<Problem>,
    /// How many agents are archived, those included whose packed file cannot be read.
    pub archived: usize,
    /// How many agents were taken from their row.
    pub from_index: usize,
    /// How many files were read.
    pub read: usize,
    /// Why more was read than need have been, for a person to be told.
    pub trouble: Option<Trouble>,
}

/// An agent.
#[derive(Clone, Debug)]
pub struct Known {
    /// What its rollout comes to.
    pub summary: Summary,
    /// Whether it was taken from its row, whose word the end of its file bears out; otherwise the file was read.
    pub trusted: bool,
    /// Bytes of the file behind what the summary counts: a write that broke off, or one that is under way. Of a packed
    /// file nothing is behind it.
    pub torn: u64,
}

/// One listing as it goes on.
struct Listing<'a> {
    mirror: &'a Mirror,
    store: &'a Store,
    wanted: Wanted,
    seen: HashSet<ThreadId>,
    /// Whether notes may wait for room.
    patient: bool,
    catalogue: Catalogue,
}

impl Known {
    /// Whether its rollout is packed, so that its tree has to be brought back before anybody drives it.
    pub fn is_archived(&self) -> bool {
        is_packed(&self.summary.file)
    }
}

impl Mirror {
    /// Lists the agents of one tree, or of all. The files are listed by name and length; a row is believed when its
    /// file has its length and ends in its last line, every other file is read and noted. So whatever is wrong with the
    /// mirror, the catalogue is right. A row without a file stays and is told of each time: a row is only made of what
    /// was synced, so that rollout was there, and nothing but a person removes one. The store learns where the files
    /// are. Blocks.
    ///
    /// # Errors
    /// When the folder of the sessions exists and cannot be listed, or there is no descriptor to read a file with: what
    /// cannot be read for that must not be taken for damaged.
    pub fn catalogue(&self, store: &Store, tree: Option<TreeId>) -> Result<Catalogue, Error> {
        self.list(store, tree.map_or(Wanted::All, Wanted::Tree))
    }

    /// As [`Mirror::catalogue`], of the roots of all trees and of nobody else: what says which trees there are. An agent
    /// that its row or its first line says is none is not looked at further, so this does not cost what all agents do.
    ///
    /// # Errors
    /// As [`Mirror::catalogue`].
    pub fn roots(&self, store: &Store) -> Result<Catalogue, Error> {
        self.list(store, Wanted::Roots)
    }

    fn list(&self, store: &Store, wanted: Wanted) -> Result<Catalogue, Error> {
        // Rows before files: a file that grows in between is longer than its row, never the other way round.
        let (mut rows, trouble) = match self.stored(wanted) {
            Ok(found) => found,
            Err(trouble) => (HashMap::new(), Some(trouble)),
        };
        let Files { files, problems, complete } = store.files()?;
        let catalogue = Catalogue { problems, trouble, ..Catalogue::default() };
        let mut listing = Listing { mirror: self, store, wanted, seen: HashSet::new(), patient: true, catalogue };
        let looks = by_side(&files, |facts| look(store, wanted, facts, rows.get(&facts.thread)));
        for (facts, look) in files.into_iter().zip(looks) {
            // Of two files of one id the first has the row.
            let stored = match look {
                Look::Elsewhere => continue,
                Look::Trusted | Look::Read(_) => rows.remove(&facts.thread),
            };
            let (mark, summary) = match stored {
                Some(Stored::Row { mark, summary }) => (Some(mark), summary),
                Some(Stored::Elsewhere) | None => (None, None),
            };
            match (look, summary) {
                (Look::Trusted, Some(summary)) => listing.trust(facts, *summary),
                (Look::Read(reading), summary) => {
                    listing.read(&facts, mark, summary.as_ref().map(|summary| &summary.meta), *reading)?;
                }
                (_, _) => listing.read(&facts, mark, None, (store.identify(&facts), None))?,
            }
        }
        if complete {
            let mut missing = Vec::new();
            for (thread, stored) in rows {
                match stored {
                    Stored::Row { summary: Some(summary), .. } if is_missed(store, &summary) => {
                        // Otherwise it is on its way from one place to the other at this moment.
                        if !store.is_somewhere(thread, &summary.file) {
                            missing.push(*summary);
                        }
                    }
                    Stored::Row { mark, .. } => listing.note(thread, Change::listed(Some(mark), None)),
                    Stored::Elsewhere => {}
                }
            }
            listing.catalogue.problems.extend(gone(store.home(), missing));
        }
        let mut catalogue = listing.catalogue;
        if let Wanted::Tree(_) = wanted {
            catalogue.agents.sort_by_cached_key(|known| known.summary.meta.rank());
        }
        Ok(catalogue)
    }
}

/// What is seen of one file without looking at any other.
enum Look {
    /// It is an agent's that is not wanted, and an agent never changes its tree.
    Elsewhere,
    /// It bears its row out.
    Trusted,
    /// It had to be read.
    Read(Box<Reading>),
}

/// Whose file it is, and what it comes to, if that was read.
type Reading = (Result<Identity, Error>, Option<Result<Summary, Error>>);

fn look(store: &Store, wanted: Wanted, facts: &FileFacts, stored: Option<&Stored>) -> Look {
    match stored {
        Some(Stored::Elsewhere) => return Look::Elsewhere,
        Some(Stored::Row { summary: Some(summary), .. }) if store.tail_matches(facts, summary) => return Look::Trusted,
        Some(Stored::Row { .. }) | None => {}
    }
    let identity = store.identify(facts);
    let read = match &identity {
        // What is read of a root may be kept, one after the other: see `Store::lists_root`.
        Ok(Identity::Agent(meta)) if meta.id != meta.session_id.root() && wanted.has(meta.id, meta.session_id) => {
            Some(store.summarise(facts))
        }
        _ => None,
    };
    Look::Read(Box::new((identity, read)))
}

/// Whether a file that is not there should be: nobody set it aside or has begun to delete its tree.
fn is_missed(store: &Store, summary: &Summary) -> bool {
    !is_aside(store, summary) && !store.is_deleting(summary.meta.session_id)
}

/// Whether a file was set aside as one that never became an agent's.
fn is_aside(store: &Store, summary: &Summary) -> bool {
    let mut name = summary.file.as_os_str().to_owned();
    name.push(".unborn");
    store.disk().exists(std::path::Path::new(&name))
}

impl Listing<'_> {
    fn trust(&mut self, facts: FileFacts, summary: Summary) {
        // The home may have been moved since.
        let summary = Summary { file: facts.file.clone(), ..summary };
        if self.add(facts, summary, true) {
            self.catalogue.from_index += 1;
        }
    }

    fn read(
        &mut self,
        facts: &FileFacts,
        disproved: Option<Mark>,
        row: Option<&SessionMeta>,
        (identity, read): Reading,
    ) -> Result<(), Error> {
        match identity? {
            Identity::Agent(meta) if self.wanted.has(meta.id, meta.session_id) => {
                if meta.id == meta.session_id.root() {
                    self.store.lists_root(meta.id);
                }
            }
            Identity::Agent(_) => return Ok(()),
            Identity::Unborn(_) if row.is_some() => {
                // A row is only made of what was synced.
                self.emptied(facts, row);
                return Ok(());
            }
            Identity::Unborn(unborn) => {
                if unborn.tree.is_none_or(|tree| self.wanted.may_have(tree)) {
                    self.catalogue.problems.extend(facts.stray(&unborn));
                    self.catalogue.unborn.push(unborn);
                }
                return Ok(());
            }
            Identity::Odd(mut problem) => {
                if let Some(tree) = self.store.labelled(facts).filter(|tree| self.wanted.may_have(*tree)) {
                    self.catalogue.archived += 1;
                    problem.why += &format!("; it is of the tree {tree}");
                    problem.tree = Some(tree);
                }
                if let Some(SessionMeta { agent_path, session_id, .. }) = row {
                    problem.why += &format!("; it was the rollout of {agent_path} in the tree {session_id}");
                    problem.tree = Some(*session_id);
                }
                self.catalogue.problems.push(problem);
                return Ok(());
            }
        }
        self.catalogue.read += 1;
        match read.unwrap_or_else(|| self.store.summarise(facts)) {
            Ok(summary) => {
                let disproved = disproved.filter(|mark| mark.is_after(&summary));
                if let Some(mark) = disproved.filter(|_| row.is_some() && summary.skipped == 0) {
                    // A row is only made of what was synced. It is told once: then the row is what there is.
                    let (lines, path) = (mark.ordinal.saturating_sub(summary.ordinal), &summary.meta.agent_path);
                    let what = if lines == 1 { "line" } else { "lines" };
                    let why = format!(
                        "the rollout of {path} in the tree {} had {lines} more {what} at its end; put it back from a copy",
                        summary.meta.session_id
                    );
                    let tree = Some(summary.meta.session_id);
                    self.catalogue.problems.push(Problem { file: facts.file.clone(), why, tree });
                }
                if self.add(facts.clone(), summary.clone(), false) {
                    self.note(facts.thread, Change::listed(disproved, Some(summary)));
                }
            }
            Err(error) if error.is_shortage() => return Err(error),
            Err(error) => {
                self.catalogue.archived += usize::from(is_packed(&facts.file));
                self.catalogue.problems.push(Problem { file: facts.file.clone(), why: error.to_string(), tree: None });
            }
        }
        Ok(())
    }

    /// A file that was an agent's and breaks off in its first write: whatever it held is lost.
    fn emptied(&mut self, facts: &FileFacts, row: Option<&SessionMeta>) {
        let Some(SessionMeta { agent_path, session_id, .. }) = row else { return };
        let what = if facts.bytes == 0 { "is empty" } else { "breaks off in its first write" };
        let why =
            format!("it {what} and was the rollout of {agent_path} in the tree {session_id}; put it back from a copy");
        self.catalogue.problems.push(Problem { file: facts.file.clone(), why, tree: Some(*session_id) });
    }

    fn note(&mut self, thread: ThreadId, change: Change) {
        self.patient &= self.mirror.note_listed(thread, change, self.patient);
    }

    fn add(&mut self, facts: FileFacts, summary: Summary, trusted: bool) -> bool {
        let first = self.seen.insert(facts.thread);
        if first {
            self.catalogue.archived += usize::from(is_packed(&facts.file));
            let torn = if is_packed(&facts.file) { 0 } else { facts.bytes.saturating_sub(summary.bytes) };
            self.store.learn(facts.thread, facts.file);
            self.catalogue.agents.push(Known { summary, trusted, torn });
        } else {
            let why = format!("another file carries the same id {}", facts.thread);
            self.catalogue.problems.push(Problem { file: facts.file, why, tree: None });
        }
        first
    }
}

#[cfg(test)]
mod tests;
