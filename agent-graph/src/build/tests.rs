use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::graph::tests::{node, thread};
use crate::{Edge, Filter};

fn check(nodes: Vec<Node>, expect: Expect) {
    let (graph, problems) = Graph::build(nodes);
    let mut loaded: Vec<String> = graph.iter().map(|node| node.path.to_string()).collect();
    if loaded.is_empty() {
        loaded.push("nobody".to_owned());
    }
    let problems: Vec<String> =
        problems.iter().map(|p| p.to_string().replace("00000000-0000-7000-8000-000000000", "#")).collect();
    expect.assert_eq(&format!("{}\n{}", loaded.join(" "), problems.join("\n")));
}

#[test]
fn in_any_order() {
    check(
        vec![node(4, 3, "/root/b/x"), node(3, 1, "/root/b"), node(1, 0, "/root"), node(2, 1, "/root/a")],
        expect![["/root /root/a /root/b /root/b/x\n"]],
    );
}

#[test]
fn a_missing_parent_leaves_out_those_below() {
    check(
        vec![node(4, 3, "/root/b/x"), node(5, 4, "/root/b/x/y"), node(1, 0, "/root"), node(2, 1, "/root/a")],
        expect![[r"
            /root /root/a
            /root/b/x (#004) is left out: its parent #003 could not be loaded
            /root/b/x/y (#005) is left out: its parent #004 could not be loaded"]],
    );
    check(
        vec![node(2, 1, "/root/a")],
        expect![["nobody\n/root/a (#002) is left out: its parent #001 could not be loaded"]],
    );
    check(vec![], expect![["nobody\n"]]);
}

#[test]
fn cycles_end() {
    check(
        vec![
            node(1, 0, "/root"),
            node(2, 3, "/root/a"),
            node(3, 2, "/root/a/b"),
            node(4, 3, "/root/a/b/c"),
            node(5, 5, "/root/d"),
        ],
        expect![[r"
            /root
            agents are left out because each is an ancestor of the others: #002, #003
            agents are left out because each is an ancestor of the others: #005
            /root/a/b/c (#004) is left out: its parent #003 could not be loaded"]],
    );
}

#[test]
fn contradictions() {
    let mut second = node(3, 1, "/root/a");
    second.incarnation = 2;
    check(
        vec![node(1, 0, "/root"), second.clone(), node(2, 1, "/root/a"), node(4, 3, "/root/a/x")],
        expect![[r"
            /root /root/a
            /root/a (#003) is left out: /root/a is taken by an open agent: choose another name, or close that one first
            /root/a/x (#004) is left out: its parent #003 could not be loaded"]],
    );
    // The first one is closed: both have their place.
    let mut first = node(2, 1, "/root/a");
    first.edge = Edge::Closed { reason: "done".to_owned() };
    check(
        vec![node(1, 0, "/root"), second, first, node(4, 3, "/root/a/x")],
        expect![["/root /root/a /root/a /root/a/x\n"]],
    );
    check(
        vec![node(1, 0, "/root"), node(2, 1, "/root/a/b"), node(3, 0, "/root"), node(4, 0, "/root/z")],
        expect![[r"
            /root
            /root (#003) is left out: the tree has a root already: #001
            /root/z (#004) is left out: the tree has a root already: #001
            /root/a/b (#002) is left out: /root/a/b is not a child path of /root: it must be that path and one name"]],
    );
}

/// One file read twice is one agent; if one copy is closed, the agent is.
#[test]
fn doubles() {
    let mut closed = node(2, 1, "/root/a");
    closed.edge = Edge::Closed { reason: "done".to_owned() };
    for nodes in [[node(2, 1, "/root/a"), closed.clone()], [closed, node(2, 1, "/root/a")]] {
        let (graph, problems) = Graph::build(nodes.into_iter().chain([node(1, 0, "/root")]));
        assert_eq!(problems, []);
        assert_eq!(graph.len(), 2);
        assert!(!graph.is_open(thread(2)));
    }
}

proptest::proptest! {
    /// Whatever the data, building ends, loads only what hangs on the root, and accounts for everybody.
    #[test]
    fn everybody_is_loaded_or_told(parents in proptest::collection::vec(0..12u32, 1..12)) {
        let paths: Vec<String> = (0..parents.len()).map(|n| if n == 0 { "/root".into() } else { format!("/root/a{n}") }).collect();
        let nodes: Vec<Node> = parents
            .iter()
            .zip(&paths)
            .enumerate()
            .map(|(n, (parent, path))| node(u32::try_from(n).unwrap() + 1, if n == 0 { 0 } else { *parent }, path))
            .collect();
        let total = nodes.len();
        let (graph, problems) = Graph::build(nodes);
        let told: usize = problems.iter().map(|p| if let Problem::Cycle(threads) = p { threads.len() } else { 1 }).sum();
        proptest::prop_assert_eq!(graph.len() + told, total);
        proptest::prop_assert_eq!(graph.iter().count(), graph.len());
    }
}

/// An agent as damaged data may have it: any parent, itself included, and a path that may fit that parent or not.
fn damaged() -> impl Strategy<Value = Node> {
    const PATHS: [&str; 7] = ["/root", "/root/a", "/root/b", "/root/a/a", "/root/a/b", "/root/b/a", "/root/a/a/a"];
    (1..8u32, 0..8u32, proptest::sample::select(&PATHS[..]), 1..3u32, any::<bool>()).prop_map(
        |(n, parent, path, incarnation, open)| {
            let edge = if open { Edge::Open } else { Edge::Closed { reason: "done".to_owned() } };
            Node { incarnation, edge, ..node(n, parent, path) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Whatever is found on a disk: building ends, whoever is loaded hangs on the root by sound edges, whoever is not
    /// is told, and nobody is reached through a closed edge.
    #[test]
    fn damaged_data_makes_a_sound_tree(nodes in proptest::collection::vec(damaged(), 0..24)) {
        let found: BTreeSet<ThreadId> = nodes.iter().map(|node| node.thread).collect();
        let (graph, problems) = Graph::build(nodes.clone());
        let loaded: Vec<&Node> = graph.iter().collect();
        let told: BTreeSet<ThreadId> = problems.iter().flat_map(|problem| match problem {
            Problem::Orphan { thread, .. } | Problem::Refused { thread, .. } => vec![*thread],
            Problem::Cycle(threads) => threads.clone(),
        }).collect();
        let there: BTreeSet<ThreadId> = loaded.iter().map(|node| node.thread).collect();
        prop_assert_eq!(there.len(), graph.len(), "a walk meets each of them once");
        prop_assert_eq!(&(&there | &told), &found);
        let mut held = BTreeSet::new();
        for node in &loaded {
            let up = graph.ancestors(node.thread);
            prop_assert_eq!(up.len(), node.path.depth());
            prop_assert_eq!(up.last().copied().or(Some(node.thread)), graph.root());
            for (path, above) in std::iter::successors(node.path.parent(), AgentPath::parent).zip(&up) {
                prop_assert_eq!(&graph.get(*above).unwrap().path, &path);
            }
            let open = up.iter().chain([&node.thread]).all(|thread| graph.is_open(*thread));
            prop_assert_eq!(graph.is_reachable(node.thread), open);
            if open {
                prop_assert!(held.insert(node.path.clone()), "a path is held once");
                prop_assert_eq!(graph.resolve(&node.path), Some(node.thread));
            }
            if !graph.is_reachable(node.thread) {
                prop_assert_eq!(graph.descendants(node.thread, Filter::Open), vec![]);
            }
        }
        // A second reading, in another order, comes to the same; unless one agent was found as two.
        if found.len() == nodes.len() {
            let (again, _) = Graph::build(nodes.into_iter().rev());
            prop_assert!(graph.iter().eq(again.iter()));
        }
    }
}
