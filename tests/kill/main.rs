//! Kills a running tree at its writes, takes it over, and counts that nothing was lost and nothing happened twice.
//!
//! There are two ways in. `tests` names points of one small scenario; a new one is a line there. `case` is what a home
//! goes through after a kill, `verify` what must hold at its end, `scene` the scenario with its model and its commands,
//! `point` where a process is killed. `close`, `archive` and `fork` have scenarios of their own.
//!
//! `play` is a scenario as data, and the model that plays any; `life` is what its home goes through, `tally` what is
//! counted at the end. `sweep` kills a family of five at every effect, `faults` lets its disk and its model fail, and
//! `torture` draws plays and kills from seeds, by `draw` and `habits`.

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
mod fork;
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
