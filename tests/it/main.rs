//! The command from outside: its binary, a scripted model server over HTTP, real files, real processes.
//!
//! Each test says what every agent of its tree answers (`play`), runs the command, and asks what the server saw, what
//! stands on disk and what the command said. [`play::end`] closes each: the invariants hold of every request.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod archive;
mod bad;
mod budget;
mod close;
mod control;
mod count;
mod faults;
mod forks;
mod json;
mod leaving;
mod mail;
mod orphans;
mod outside;
mod owner;
mod pages;
mod pairs;
mod play;
mod resume;
mod run;
mod signals;
mod socket;
mod stalls;
mod sweep;
mod tools;
mod verify;
mod wires;
