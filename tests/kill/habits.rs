//! How a model server behaves beside what it says: odd shapes, call ids that repeat, weather.

use testkit::Reply;

use crate::draw::Dice;

/// The default is a good one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    pub(crate) seed: u64,
    /// Every call has the same id.
    pub(crate) same_ids: bool,
    /// Which of the shapes its streams have.
    pub(crate) shape: usize,
    /// How many of a hundred replies go wrong on the way.
    pub(crate) storms: usize,
}

impl Habits {
    /// How many shapes there are.
    pub(crate) const SHAPES: usize = 7;

    /// The `n`-th reply of this server, as it is sent.
    pub(crate) fn on(&self, reply: Reply, n: usize) -> Reply {
        let reply = if self.same_ids { reply.repeat_call_ids() } else { reply };
        let reply = match self.shape {
            1 => reply.crlf().comments(),
            2 => reply.split_bytes(7),
            3 => reply.nameless().done_line(),
            4 => reply.unannounced(),
            5 => reply.whole(),
            6 => reply.interleaved(),
            _ => reply,
        };
        let mut dice = Dice::new(self.seed.wrapping_mul(31).wrapping_add(n as u64));
        if !dice.percent(self.storms) {
            return reply;
        }
        let events = dice.below(6);
        match dice.below(9) {
            0 => reply.cut_after(events),
            1 => reply.reset_after(events),
            2 => reply.cut_inside_event(events),
            3 => reply.garbage(),
            4 => reply.stall_after(events),
            5 => reply.stall_before_headers(),
            6 => Reply::new().status(500),
            7 => Reply::new().status_with_headers(429, [("retry-after", "1")]),
            _ => reply.no_completed(),
        }
    }
}
