//! The ids of calls on the wire: each only once in a conversation, whatever servers repeat.

use std::collections::HashMap;

/// The ids that are taken. What was taken since the last [`Ids::settle`] can be given back.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Each with the number that the next one like it tries first.
    taken: HashMap<Box<str>, u64>,
    /// What changed, with what was there before.
    changes: Vec<(Box<str>, Option<u64>)>,
}

impl Ids {
    /// Takes `base`, or `base` with the first number that makes it one that nobody has.
    pub(super) fn take(&mut self, base: &str) -> String {
        let Some(&next) = self.taken.get(base) else {
            self.put(base, 2);
            return base.to_owned();
        };
        let mut n = next;
        loop {
            let id = format!("{base}_{n}");
            // A number that is taken once stays so: nobody has to try it again.
            n += 1;
            if !self.taken.contains_key(&*id) {
                self.put(base, n);
                self.put(&id, 2);
                return id;
            }
        }
    }

    /// How many changes there were since the last settling.
    pub(super) fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Makes the first of the changes stay, `count` of them.
    pub(super) fn settle(&mut self, count: usize) {
        self.changes.drain(..count.min(self.changes.len()));
    }

    /// Gives back what has not settled.
    pub(super) fn give_back(&mut self) {
        while let Some((id, before)) = self.changes.pop() {
            match before {
                Some(next) => self.taken.insert(id, next),
                None => self.taken.remove(&id),
            };
        }
        self.changes = Vec::new();
    }

    fn put(&mut self, id: &str, next: u64) {
        let before = self.taken.insert(id.into(), next);
        self.changes.push((id.into(), before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_only_once() {
        let mut ids = Ids::default();
        let given: Vec<String> = ["a", "a_2", "a", "a", "b", "a_2"].iter().map(|base| ids.take(base)).collect();
        assert_eq!(given, ["a", "a_2", "a_3", "a_4", "b", "a_2_2"]);
    }

    #[test]
    fn what_is_given_back_is_given_out_again() {
        let mut ids = Ids::default();
        ids.take("a");
        ids.take("a");
        ids.settle(ids.changes());
        for _ in 0..2 {
            assert_eq!([ids.take("a"), ids.take("b"), ids.take("a")], ["a_3", "b", "a_4"]);
            ids.give_back();
        }
        // Some of it may stay.
        ids.take("b");
        let count = ids.changes();
        ids.take("b");
        ids.settle(count);
        ids.give_back();
        assert_eq!([ids.take("b"), ids.take("a")], ["b_2", "a_3"]);
    }
}
