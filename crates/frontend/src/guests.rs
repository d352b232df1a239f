//! Who is connected: so many at once, and one that does nothing makes room for a newcomer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The connections of one owner.
#[derive(Clone)]
pub(crate) struct Guests(Arc<Inner>);

struct Inner {
    max: usize,
    /// How long one must have asked for nothing before it has to make room.
    spare: Duration,
    /// A std mutex: held for a look through the list.
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    next: u64,
    guests: Vec<Guest>,
}

struct Guest {
    id: u64,
    /// When it last asked for something, or came in.
    asked: Instant,
    /// What is being done for it; while there is anything, it stays.
    tasks: TaskTracker,
    leave: CancellationToken,
}

/// A place among the guests, given up when dropped.
pub(crate) struct Seat {
    guests: Guests,
    id: u64,
    /// What is being done for this guest.
    pub(crate) tasks: TaskTracker,
    /// Fires when it has to make room.
    pub(crate) leave: CancellationToken,
}

impl Guests {
    pub(crate) fn new(max: usize, spare: Duration) -> Self {
        Self(Arc::new(Inner { max, spare, list: Mutex::default() }))
    }

    /// A place for a newcomer. When all are taken, whoever has asked for nothing longest makes room, if nothing is
    /// being done for it: neither a request, nor a wait, nor events. None when all are busy.
    pub(crate) fn admit(&self, now: Instant) -> Option<Seat> {
        let mut list = self.lock();
        if list.guests.len() >= self.0.max {
            let spare = |guest: &&Guest| now.saturating_duration_since(guest.asked) >= self.0.spare;
            let idle = list.guests.iter().filter(|guest| guest.tasks.is_empty()).filter(spare);
            let id = idle.min_by_key(|guest| (guest.asked, guest.id))?.id;
            let at = list.guests.iter().position(|guest| guest.id == id)?;
            list.guests.swap_remove(at).leave.cancel();
        }
        let (tasks, leave) = (TaskTracker::new(), CancellationToken::new());
        list.next += 1;
        let id = list.next;
        list.guests.push(Guest { id, asked: now, tasks: tasks.clone(), leave: leave.clone() });
        drop(list);
        Some(Seat { guests: self.clone(), id, tasks, leave })
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// This guest asks for something.
    pub(crate) fn asks(&self, now: Instant) {
        if let Some(guest) = self.guests.lock().guests.iter_mut().find(|guest| guest.id == self.id) {
            guest.asked = now;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.guests.lock().guests.retain(|guest| guest.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_one_makes_room_and_a_busy_one_never() {
        let begin = Instant::now();
        let second = |n| begin + Duration::from_secs(n);
        let guests = Guests::new(3, Duration::from_secs(1));
        let seats: Vec<Seat> = (0..3).filter_map(|_| guests.admit(begin)).collect();
        let left = |seats: &[Seat]| seats.iter().map(|seat| seat.leave.is_cancelled()).collect::<Vec<_>>();
        assert!(guests.admit(begin).is_none(), "they have only just come");
        seats[0].asks(second(5));
        let work = seats[1].tasks.token();
        let fourth = guests.admit(second(10)).unwrap();
        assert_eq!(left(&seats), [false, false, true]);
        let _fifth = guests.admit(second(10)).unwrap();
        assert_eq!(left(&seats), [true, false, true]);
        assert!(guests.admit(second(10)).is_none(), "one works and two have only just come");
        drop(work);
        drop(fourth);
        let _sixth = guests.admit(second(10)).unwrap();
        assert!(!seats[1].leave.is_cancelled(), "there was room");
        // Whoever made room gives up nobody else's place with its own.
        drop(seats);
        assert_eq!(guests.lock().guests.len(), 2);
    }
}
