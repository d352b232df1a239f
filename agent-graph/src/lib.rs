//! agent-graph
