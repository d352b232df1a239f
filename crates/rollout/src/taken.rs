//! Making a reference to a parent's conversation, and reading what one refers to.
//!
//! A line of the parent is in memory at a time, whatever the length of the stretch, and one more for each fork that the
//! parent comes from itself.

use std::io;
use std::ops::ControlFlow;

use protocol::{Address, Item, MAX_DEPTH_HARD, ThreadId};
use stdx::AbsPath;

use crate::error::lost;
use crate::fork::{Beginning, Selector};
use crate::front::Front;
use crate::line::decode_envelope;
use crate::read::{self, Wanted};
use crate::source::{Source, Walk};
use crate::summary::checksum_on;
use crate::{Error, ForkTurns, Forked, ItemRecord, Lack, Record, Store, Tally, back, checksum, packed};

/// Forks in a row: every one of them is a level further down its tree, and no tree is deeper.
const MAX_CHAIN: usize = MAX_DEPTH_HARD;

/// What a stretch gave.
struct Taken {
    items: u64,
    sum: u64,
    /// What was wrong on the way.
    why: Option<String>,
    /// The last line that counted, when the file ended before a later one was seen.
    ends: Option<u64>,
}

/// Who gets the items.
type Each<'a> = &'a mut dyn FnMut(Item);

impl Store {
    /// What a child takes over that is forked from this agent now; none when there is nothing. The agent's writer has to
    /// be synced after this and before the child is made: then whatever the child refers to is on the disk.
    ///
    /// # Errors
    /// When there is no such agent or its file, or that of one it was forked from, cannot be read.
    pub fn fork(&self, parent: &Address, turns: ForkTurns) -> Result<Option<Forked>, Error> {
        let file = self.file(parent.thread)?;
        let source = self.source(&file)?;
        let unread = |error| lost("read", &file, error);
        let from = back::newest(&source).map_err(unread)?.unwrap_or(0);
        let mut beginning = Beginning::new(turns);
        // All of it begins at a compaction or at the first item, whatever the other items are.
        let wanted: Wanted = match turns {
            ForkTurns::All => |kind| kind == "compacted",
            ForkTurns::Last(_) => |kind| matches!(kind, "response_item" | "compacted" | "forked"),
        };
        let mut start = None;
        let tally = read::read(&source, from, wanted, |line| {
            start = start.or(Some(line.ordinal));
            beginning.line(&line);
            ControlFlow::Continue(())
        });
        let through = tally.map_err(unread)?.last;
        let first = beginning.first().or(start.filter(|_| turns == ForkTurns::All));
        let Some(first) = first else { return Ok(None) };
        let at = if start == Some(first) { from } else { locate(&source, first).map_err(unread)? };
        let mut fork = Forked { parent: parent.clone(), first, at, through, items: 0, checksum: String::new() };
        let taken = self.take(&fork, &mut Vec::new(), &mut drop)?;
        // A last write that seems whole by how its lines begin may not be by what is in them.
        fork.through = taken.ends.map_or(through, |ends| through.min(ends));
        fork.items = taken.items;
        fork.checksum = format!("{:016x}", taken.sum);
        Ok((fork.items > 0).then_some(fork))
    }

    /// Feeds the items that a child takes over to `each`, in order. What is not there any more is passed over and told.
    ///
    /// # Errors
    /// When a file is there and the system does not let it be read.
    pub fn taken_over(&self, fork: &Forked, mut each: impl FnMut(Item)) -> Result<Option<Lack>, Error> {
        let taken = self.take(fork, &mut Vec::new(), &mut each)?;
        if taken.items == fork.items && format!("{:016x}", taken.sum) == fork.checksum {
            return Ok(None);
        }
        let why = taken.why.unwrap_or_else(|| "its rollout, or one that it refers to, was changed".to_owned());
        Ok(Some(Lack { parent: fork.parent.clone(), items: fork.items, found: taken.items, why }))
    }

    /// As [`Store::taken_over`], without comparing. `chain` are those whose files are being read for it.
    fn take(&self, fork: &Forked, chain: &mut Vec<ThreadId>, each: Each<'_>) -> Result<Taken, Error> {
        let thread = fork.parent.thread;
        let mut taken = Taken { items: 0, sum: checksum(b""), why: None, ends: None };
        if chain.contains(&thread) || chain.len() == MAX_CHAIN {
            let what = if chain.contains(&thread) { "in a circle" } else { "further up than a tree is deep" };
            taken.why = Some(format!("forks refer to each other {what}; put the rollouts back from a copy"));
            return Ok(taken);
        }
        let (file, source) = match self.parent_source(thread)? {
            Ok(found) => found,
            Err(why) => {
                taken.why = Some(why);
                return Ok(taken);
            }
        };
        chain.push(thread);
        let stretch = Stretch { store: self, fork, file: &file, source: &source };
        let done = stretch.read(&mut taken, chain, each);
        chain.pop();
        done?;
        Ok(taken)
    }

    /// An agent's file, wherever it is; or why there is nothing to read of it.
    fn parent_source(&self, thread: ThreadId) -> Result<Result<(AbsPath, Source), String>, Error> {
        let gone = || Ok(Err(format!("the rollout of {thread} is not there; put it back from a copy")));
        let file = match self.file(thread) {
            Ok(file) => self.present(&file),
            Err(Error::Missing { .. }) => return gone(),
            Err(error) => return Err(error),
        };
        match Source::open(&**self.disk(), &file) {
            Ok(source) => Ok(Ok((file, source))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => gone(),
            Err(error) => match packed::damage(&file, &error) {
                Some(why) => Ok(Err(format!("`{file}` is damaged ({why}); put it back from a copy"))),
                None => Err(lost("read", &file, error)),
            },
        }
    }

    /// The rollouts of the home that this file lies in, by its place; these, when it lies in none.
    #[must_use]
    pub fn around(&self, file: &AbsPath) -> Self {
        /// The folders of day, month and year, that of all, and the home.
        const ABOVE: usize = 5;
        let all = [self.sessions().folder, self.archive_place().folder];
        if all.iter().any(|folder| file.starts_with(folder)) {
            return self.clone();
        }
        let names: Vec<_> = all.iter().filter_map(|folder| folder.file_name()).collect();
        let place =
            file.ancestors().nth(ABOVE - 1).filter(|place| place.file_name().is_some_and(|n| names.contains(&n)));
        match place.and_then(|place| AbsPath::new(place.parent()?).ok()) {
            Some(home) => Self::new(home, std::sync::Arc::clone(self.disk())),
            None => self.clone(),
        }
    }
}

/// A stretch of a parent's file.
struct Stretch<'a> {
    store: &'a Store,
    fork: &'a Forked,
    file: &'a AbsPath,
    source: &'a Source,
}

impl Stretch<'_> {
    fn read(&self, taken: &mut Taken, chain: &mut Vec<ThreadId>, each: Each<'_>) -> Result<(), Error> {
        let Self { store, fork, file, source } = *self;
        let unread = |error| lost("read", file, error);
        let from = match is_at(source, fork.at, fork.first) {
            Ok(true) => fork.at,
            Ok(false) => 0,
            // As much as there is before the damage.
            Err(error) if packed::damage(file, &error).is_some() => 0,
            Err(error) => return Err(unread(error)),
        };
        let mut selector = Selector::new();
        let (mut over, mut nested, mut failed) = (false, false, None);
        let tally = {
            let mut give = |record: &ItemRecord, kept: bool| {
                if selector.takes(record, kept) {
                    taken.give(record.item.clone(), each);
                }
            };
            // What is wrong further up is nearer to the cause.
            let mut above = None;
            let tally = read::read(source, from, read::all, |line| {
                if line.ordinal > fork.through {
                    over = true;
                    return ControlFlow::Break(());
                }
                match line.record {
                    _ if line.ordinal < fork.first => {}
                    Record::Item(record) => give(&record, false),
                    Record::Compacted(compacted) if line.ordinal == fork.first => {
                        for item in compacted.replacement_history.unwrap_or_default() {
                            give(&bare(item, None), true);
                        }
                    }
                    // There is one at the most, in the first write; another would be read again and again.
                    Record::Forked(inner) if !nested => {
                        nested = true;
                        let copied = Some(inner.parent.thread);
                        match store.take(&inner, chain, &mut |item| give(&bare(item, copied), false)) {
                            Ok(inner) => above = inner.why,
                            Err(error) => {
                                failed = Some(error);
                                return ControlFlow::Break(());
                            }
                        }
                    }
                    _ => {}
                }
                ControlFlow::Continue(())
            });
            taken.why = above;
            tally
        };
        if let Some(error) = failed {
            return Err(error);
        }
        let tally = match tally {
            Ok(tally) => tally,
            Err(error) => match packed::damage(file, &error) {
                Some(why) => {
                    taken.why = Some(format!("`{file}` is damaged ({why}); put it back from a copy"));
                    Tally::default()
                }
                None => return Err(unread(error)),
            },
        };
        if taken.why.is_none() {
            taken.why = wrong(file, &tally, over, fork);
        }
        taken.ends = (!over).then_some(tally.last);
        selector.answers().for_each(|answer| taken.give(answer, each));
        Ok(())
    }
}

impl Taken {
    fn give(&mut self, item: Item, each: &mut dyn FnMut(Item)) {
        self.items += 1;
        self.sum = checksum_on(checksum_on(self.sum, item.raw().as_bytes()), b"\n");
        each(item);
    }
}

/// What a person is to know of a file that did not give what it should.
fn wrong(file: &AbsPath, tally: &Tally, over: bool, fork: &Forked) -> Option<String> {
    match tally.skipped {
        0 if !over && tally.last < fork.through => {
            Some(format!("`{file}` ends at line {} and should have line {}", tally.last, fork.through))
        }
        0 => None,
        1 => Some(format!("1 line of `{file}` cannot be read")),
        lines => Some(format!("{lines} lines of `{file}` cannot be read")),
    }
}

/// An item of which nothing else counts.
fn bare(item: Item, copied_from: Option<ThreadId>) -> ItemRecord {
    ItemRecord { item, effect: None, mail: Vec::new(), turn: None, copied_from }
}

/// Whether the line that begins here has this ordinal.
fn is_at(source: &Source, offset: u64, ordinal: u64) -> io::Result<bool> {
    let mut walk = Walk::new(source, offset);
    let Some(line) = walk.next()?.filter(|line| line.whole) else { return Ok(false) };
    let found = line.front().map(|front| front.ordinal).or_else(|| decode_envelope(line.text));
    Ok(found == Some(ordinal))
}

/// Where the line with this ordinal begins; the beginning of the file when it is not found.
fn locate(source: &Source, ordinal: u64) -> io::Result<u64> {
    let found = source.backwards(|_, front| Ok(Front::of(front).is_some_and(|front| front.ordinal <= ordinal)))?;
    match found {
        Some(offset) if is_at(source, offset, ordinal)? => Ok(offset),
        _ => Ok(0),
    }
}

#[cfg(test)]
mod tests;
