use expect_test::{Expect, expect};
use protocol::ThreadId;

use crate::graph::tests::{graph, thread};

/// `tree` as [`graph`] takes it; the agent named by its path wants a child.
fn check(tree: &str, parent: &str, name: &str, (max_depth, max_agents): (usize, usize), expect: Expect) {
    let (graph, threads) = graph(tree);
    let parent: ThreadId = threads.get(parent).copied().unwrap_or_else(|| thread(999));
    let name = protocol::AgentName::new(name).unwrap();
    let seen = graph.can_spawn(parent, &name, max_depth, max_agents).map_or_else(|e| e.to_string(), |p| p.to_string());
    expect.assert_eq(&seen);
}

#[test]
fn limits_and_places() {
    let tree = "/root /root/a /root/a/b /root/c!";
    check(tree, "/root", "d", (4, 9), expect!["/root/d"]);
    check(
        tree,
        "/root",
        "a",
        (4, 9),
        expect!["/root/a is taken by an open agent: choose another name, or close that one first"],
    );
    check(tree, "/root", "c", (4, 9), expect!["/root/c"]);
    check(tree, "/root/c", "d", (4, 9), expect!["/root/c cannot have children: /root/c is closed (done with it)"]);
    check(tree, "/root/a/b", "d", (3, 9), expect!["/root/a/b/d"]);
    check(
        tree,
        "/root/a/b",
        "d",
        (2, 9),
        expect![
            "/root/a/b/d would be 3 levels below /root and the limit is 2 (max_depth in the configuration): do the work yourself, or give it to an agent higher up"
        ],
    );
    check(tree, "/root", "d", (4, 4), expect!["/root/d"]);
    check(
        tree,
        "/root",
        "d",
        (4, 3),
        expect![
            "this tree has spawned 3 agents and the limit is 3 (max_agents in the configuration): give a follow-up task to an agent that is there"
        ],
    );
    check(
        tree,
        "/root/nobody",
        "d",
        (4, 9),
        expect!["no agent 00000000-0000-7000-8000-000000000999 in this tree; list_agents shows who is there"],
    );
    check(
        "/root! /root/a /root/a/b",
        "/root/a/b",
        "d",
        (4, 9),
        expect!["/root/a/b cannot have children: /root is closed (done with it)"],
    );
}

#[test]
fn no_deeper_than_a_path_can_be() {
    let mut tree = String::from("/root");
    let mut path = String::from("/root");
    for _ in 0..protocol::MAX_DEPTH_HARD {
        path += "/a";
        tree = format!("{tree} {path}");
    }
    check(
        &tree,
        &path,
        "a",
        (99, 99),
        expect!["`/root/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a` is deeper than 16 levels below `/root`"],
    );
}
