//! Who spawned whom in one tree: paths, incarnations, open and closed edges, and the ways through them.
//!
//! Pure and in memory. It stores nothing (edges are lines in rollouts), decides nothing about residency or status,
//! and no index of the graph library leaves it: agents are named by thread and by path.

mod build;
mod error;
mod graph;
mod node;
mod spawn;
mod walk;

pub use build::Problem;
pub use error::GraphError;
pub use graph::Graph;
pub use node::{Edge, Node};
pub use walk::Filter;
