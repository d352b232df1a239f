//! Every agent there is: from its row where that can be believed, from its file everywhere else.

use std::collections::{HashMap, HashSet};

use protocol::{ThreadId, TreeId};
use rollout::{Error, FileFacts, Files, Identity, Problem, Store, Summary, Unborn};

use crate::change::{Change, Mark};
use crate::rows::Stored;
use crate::{Mirror, Trouble};

/// All agents, or those of one tree, as their rollouts have them at this moment.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Them. Of one tree: parents before children, siblings as they were spawned. Of all: by file name.
    pub agents: Vec<Known>,
    /// Files whose agent never existed. Of one tree: those that say so, and those that broke off before they could say
    /// whose they are.
    pub unborn: Vec<Unborn>,
    /// Files and folders that were passed over, of whatever tree.
    pub problems: Vec<Problem>,
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
}

/// One listing as it goes on.
struct Listing<'a> {
    mirror: &'a Mirror,
    store: &'a Store,
    tree: Option<TreeId>,
    seen: HashSet<ThreadId>,
    /// Whether notes may wait for room.
    patient: bool,
    catalogue: Catalogue,
}

impl Mirror {
    /// Lists the agents of one tree, or of all. The files are listed by name and length; a row is believed when its
    /// file has its length and ends in its last line, every other file is read and noted, and rows without a file go.
    /// So whatever is wrong with the mirror, the catalogue is right. The store learns where the files are. Blocks.
    ///
    /// # Errors
    /// When the folder of the sessions exists and cannot be listed.
    pub fn catalogue(&self, store: &Store, tree: Option<TreeId>) -> Result<Catalogue, Error> {
        // Rows before files: a file that grows in between is longer than its row, never the other way round.
        let (mut rows, trouble) = match self.stored(tree) {
            Ok(found) => found,
            Err(trouble) => (HashMap::new(), Some(trouble)),
        };
        let Files { files, problems } = store.files()?;
        let whole = problems.is_empty();
        let catalogue = Catalogue { problems, trouble, ..Catalogue::default() };
        let mut listing = Listing { mirror: self, store, tree, seen: HashSet::new(), patient: true, catalogue };
        for facts in files {
            match rows.remove(&facts.thread) {
                // An agent never changes its tree.
                Some(Stored::Elsewhere) => {
                    rows.insert(facts.thread, Stored::Elsewhere);
                }
                Some(Stored::Row { summary: Some(summary), .. }) if store.tail_matches(&facts, &summary) => {
                    listing.trust(facts, *summary);
                }
                Some(Stored::Row { mark, .. }) => listing.read(&facts, Some(mark)),
                None => listing.read(&facts, None),
            }
        }
        if whole {
            for (thread, stored) in rows {
                if let Stored::Row { mark, .. } = stored {
                    listing.note(thread, Change::listed(Some(mark), None));
                }
            }
        }
        let mut catalogue = listing.catalogue;
        if tree.is_some() {
            catalogue.agents.sort_by_cached_key(|known| known.summary.meta.rank());
        }
        Ok(catalogue)
    }
}

impl Listing<'_> {
    fn trust(&mut self, facts: FileFacts, summary: Summary) {
        // The home may have been moved since.
        let summary = Summary { file: facts.file.clone(), ..summary };
        if self.add(facts, summary, true) {
            self.catalogue.from_index += 1;
        }
    }

    fn read(&mut self, facts: &FileFacts, disproved: Option<Mark>) {
        match self.store.identify(facts) {
            Ok(Identity::Agent(meta)) if self.tree.is_none_or(|tree| tree == meta.session_id) => {}
            Ok(Identity::Agent(_)) => return,
            Ok(Identity::Unborn(unborn)) => {
                if self.tree.is_none() || unborn.tree.is_none() || self.tree == unborn.tree {
                    self.catalogue.unborn.push(unborn);
                }
                return;
            }
            Err(problem) => return self.catalogue.problems.push(problem),
        }
        self.catalogue.read += 1;
        match self.store.load_listed(facts) {
            Ok(loaded) => {
                let summary = loaded.summary();
                let disproved = disproved.filter(|mark| mark.is_after(&summary));
                if self.add(facts.clone(), summary.clone(), false) {
                    self.note(facts.thread, Change::listed(disproved, Some(summary)));
                }
            }
            Err(error) => {
                self.catalogue.problems.push(Problem { file: facts.file.clone(), why: error.to_string() });
            }
        }
    }

    fn note(&mut self, thread: ThreadId, change: Change) {
        self.patient &= self.mirror.note_listed(thread, change, self.patient);
    }

    fn add(&mut self, facts: FileFacts, summary: Summary, trusted: bool) -> bool {
        let first = self.seen.insert(facts.thread);
        if first {
            self.store.learn(facts.thread, facts.file);
            self.catalogue.agents.push(Known { summary, trusted });
        } else {
            let why = format!("another file carries the same id {}", facts.thread);
            self.catalogue.problems.push(Problem { file: facts.file, why });
        }
        first
    }
}

#[cfg(test)]
mod tests;
