//! The same small thing for many agents, done side by side: a listing of a thousand asks the system thousands of times and
//! parses megabytes, and whoever lists waits for all of it.

use std::thread::Builder;

/// Below so many it is done by whoever asks: starting a thread costs what some of them cost.
const MANY: usize = 64;

/// Threads at the most, the one that asks included. Where there are fewer processors they take turns.
const THREADS: usize = 4;

/// What `each` makes of every item, in their order.
pub(crate) fn by_side<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if items.len() < MANY {
        return items.iter().map(each).collect();
    }
    let each = &each;
    std::thread::scope(|scope| {
        let mut shares = items.chunks(items.len().div_ceil(THREADS));
        let own = shares.next().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| {
                let work = move || share.iter().map(each).collect::<Vec<R>>();
                (share, Builder::new().name("listing".to_owned()).spawn_scoped(scope, work).ok())
            })
            .collect();
        let mut all: Vec<R> = own.iter().map(each).collect();
        all.reserve(items.len() - own.len());
        for (share, thread) in others {
            match thread.map(std::thread::ScopedJoinHandle::join) {
                Some(Ok(done)) => all.extend(done),
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                // The system has no thread to give.
                None => all.extend(share.iter().map(each)),
            }
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_kept_however_many_there_are() {
        for many in [0, 1, MANY - 1, MANY, MANY + 1, 1000] {
            let items: Vec<usize> = (0..many).collect();
            let doubled: Vec<usize> = items.iter().map(|item| 2 * item).collect();
            assert_eq!(by_side(&items, |item| 2 * item), doubled, "of {many}");
        }
    }
}
