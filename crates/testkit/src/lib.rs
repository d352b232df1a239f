//! What tests of the whole need: a scripted model server, a home for the product, and a runner of its binary.
//!
//! Everything but the model is real: HTTP over loopback, files in a temporary folder, processes with a clean
//! environment. It knows how the product looks from outside (its wire, its files, its command line) and nothing of
//! how it works inside; it is a dev-dependency only and nothing that ships may use it.

mod agent;
pub mod brains;
mod check;
#[cfg(test)]
mod client;
mod connection;
mod fail;
mod fault;
mod gate;
mod home;
mod power;
mod reply;
mod request;
mod script;
mod server;
mod wire;

pub use agent::{Agent, Run, Running, child_value};
pub use check::{
    agreed, append_only, assert_agreed, assert_append_only, assert_bounded, assert_closed, assert_invariants,
    assert_written, bounded, closed, written,
};
pub use fault::{Act, Effect, FaultDisk, On, Op, When};
pub use gate::Gate;
pub use home::{Home, Rollout};
pub use reply::Reply;
pub use request::{Ended, Request};
pub use script::BEAT;
pub use server::Server;
pub use wire::Wire;
