//! Kills a running tree at its writes, takes it over, and counts that nothing was lost and nothing happened twice.
//!
//! `tests` names the points; a new one is a line there. `case` is what a home goes through after a kill, `verify` what
//! must hold at its end, `scene` the scenario with its model and its commands, `point` where a process is killed. `close`
//! and `archive` have scenarios of their own.

#[cfg(test)]
mod archive;
#[cfg(test)]
mod case;
#[cfg(test)]
mod close;
#[cfg(test)]
#[path = "../it/count.rs"]
mod count;
#[cfg(test)]
mod draw;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod habits;
#[cfg(test)]
mod life;
#[cfg(test)]
mod play;
#[cfg(test)]
mod point;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod tally;
#[cfg(test)]
mod torture;
#[cfg(test)]
mod verify;

#[cfg(test)]
mod tests;
