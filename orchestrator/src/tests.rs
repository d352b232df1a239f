//! A tree from its tools down: real rollouts, a model that a test plays, hands that are empty.
//!
//! [`house`] checks at every request that what is sent is what is written, and at the end of every test that all is
//! quiet, every slot free and every task answered once.

mod deadlines;
mod house;
mod player;
mod residency;
mod results;
mod schedules;
mod slots;
mod spawns;
mod stalls;
mod stops;
mod scale;
mod stress;
mod survivors;
mod takeovers;
mod waits;
