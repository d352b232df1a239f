use std::collections::{BTreeMap, BTreeSet};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use protocol::AgentName;

use super::*;
use crate::Filter;

pub(crate) fn thread(n: u32) -> ThreadId {
    format!("00000000-0000-7000-8000-{n:012}").parse().unwrap()
}

/// An open first incarnation; parent 0 is none, and siblings stand in the order of their numbers.
pub(crate) fn node(n: u32, parent: u32, path: &str) -> Node {
    Node {
        thread: thread(n),
        parent: (parent > 0).then(|| thread(parent)),
        path: path.parse().unwrap(),
        incarnation: 1,
        order: u64::from(n),
        edge: Edge::Open,
    }
}

/// A tree from its paths, parents first; numbered from 1. A path with `!` is closed once all are there.
pub(crate) fn graph(tree: &str) -> (Graph, BTreeMap<String, ThreadId>) {
    let mut graph = Graph::new();
    let mut threads = BTreeMap::new();
    for (n, path) in (1..).zip(tree.split_whitespace().map(|path| path.trim_end_matches('!'))) {
        let parent = path.parse::<AgentPath>().unwrap().parent();
        let parent = parent.and_then(|parent| threads.get(parent.as_str()).copied());
        graph.insert(Node { parent, ..node(n, 0, path) }).unwrap();
        threads.insert(path.to_owned(), thread(n));
    }
    for path in tree.split_whitespace().filter_map(|path| path.strip_suffix('!')) {
        assert!(graph.close(threads[path], "done with it"));
    }
    (graph, threads)
}

const TREE: &str = "/root /root/b /root/a! /root/b/y /root/a/x /root/b/z! /root/b/z/deep /root/b/y/low";

fn check(what: impl Fn(&Graph, ThreadId) -> Vec<ThreadId>, path: &str, expect: Expect) {
    let (graph, threads) = graph(TREE);
    let seen: Vec<&str> =
        what(&graph, threads[path]).into_iter().map(|t| graph.get(t).unwrap().path.as_str()).collect();
    expect.assert_eq(&seen.join(" "));
}

#[test]
fn walks() {
    check(Graph::children, "/root", expect!["/root/b /root/a"]);
    check(Graph::children, "/root/b", expect!["/root/b/y /root/b/z"]);
    let all = |g: &Graph, t| g.descendants(t, Filter::All);
    let open = |g: &Graph, t| g.descendants(t, Filter::Open);
    check(all, "/root", expect!["/root/b /root/a /root/b/y /root/b/z /root/a/x /root/b/y/low /root/b/z/deep"]);
    check(open, "/root", expect!["/root/b /root/b/y /root/b/y/low"]);
    check(open, "/root/b", expect!["/root/b/y /root/b/y/low"]);
    check(all, "/root/a", expect!["/root/a/x"]);
    check(open, "/root/a", expect![""]);
    check(Graph::ancestors, "/root/b/z/deep", expect!["/root/b/z /root/b /root"]);
    check(Graph::ancestors, "/root", expect![""]);
    check(
        Graph::subtree_post_order,
        "/root",
        expect!["/root/b/y/low /root/b/y /root/b/z/deep /root/b/z /root/b /root/a/x /root/a /root"],
    );
    check(Graph::subtree_post_order, "/root/a/x", expect!["/root/a/x"]);
    check(|g, t| g.nearest_reachable(t).into_iter().collect(), "/root/b/z/deep", expect!["/root/b"]);
    check(|g, t| g.nearest_reachable(t).into_iter().collect(), "/root/a/x", expect!["/root"]);
    check(|g, t| g.nearest_reachable(t).into_iter().collect(), "/root/b/y", expect!["/root/b/y"]);
    check(|g, t| g.closed_by(t).map(|node| node.thread).into_iter().collect(), "/root/b/z/deep", expect!["/root/b/z"]);
    check(|g, t| g.closed_by(t).map(|node| node.thread).into_iter().collect(), "/root/b/y/low", expect![""]);
}

#[test]
fn an_open_edge_below_a_closed_one_is_out_of_reach() {
    let (graph, threads) = graph(TREE);
    let deep = threads["/root/b/z/deep"];
    assert!(graph.is_open(deep));
    assert!(!graph.is_reachable(deep));
    assert_eq!(graph.resolve(&"/root/b/z/deep".parse().unwrap()), None);
    assert_eq!(graph.resolve_any(&"/root/b/z/deep".parse().unwrap()), [deep]);
}

#[test]
fn strangers() {
    let (mut graph, _) = graph(TREE);
    let nobody = thread(99);
    assert_eq!(graph.get(nobody), None);
    assert!(!graph.close(nobody, "x") && !graph.is_open(nobody) && !graph.is_reachable(nobody));
    assert!(graph.children(nobody).is_empty() && graph.descendants(nobody, Filter::All).is_empty());
    assert!(graph.ancestors(nobody).is_empty() && graph.subtree_post_order(nobody).is_empty());
    assert_eq!((graph.parent(nobody), graph.nearest_reachable(nobody)), (None, None));
    assert!(Graph::new().is_empty() && Graph::new().iter().next().is_none());
}

#[test]
fn closing_is_final() {
    let (mut graph, threads) = graph("/root /root/a /root/a/b");
    assert!(graph.close(threads["/root/a"], "first"));
    assert!(!graph.close(threads["/root/a"], "second"));
    graph.insert(node(2, 1, "/root/a")).unwrap();
    assert_eq!(graph.get(threads["/root/a"]).unwrap().edge, Edge::Closed { reason: "first".to_owned() });
    assert!(graph.is_open(threads["/root/a/b"]));
    graph.close(threads["/root"], "all");
    assert_eq!(graph.nearest_reachable(threads["/root/a/b"]), None);
}

#[test]
fn a_path_is_free_again_for_a_new_incarnation() {
    let (mut graph, threads) = graph("/root /root/a /root/a/b");
    let path: AgentPath = "/root/a".parse().unwrap();
    assert_eq!(graph.next_incarnation(&path), 2);
    graph.close(threads["/root/a"], "done");
    graph.insert(Node { incarnation: 2, ..node(9, 1, "/root/a") }).unwrap();
    graph.insert(Node { incarnation: 2, ..node(10, 9, "/root/a/b") }).unwrap();
    assert_eq!(graph.resolve(&path), Some(thread(9)));
    assert_eq!(graph.resolve_any(&path), [threads["/root/a"], thread(9)]);
    assert_eq!(graph.resolve(&"/root/a/b".parse().unwrap()), Some(thread(10)));
    assert_eq!(graph.next_incarnation(&path), 3);
    assert_eq!(graph.next_incarnation(&"/root/new".parse().unwrap()), 1);
    // An older one that is read late takes its place, not the path.
    graph.insert(Node { incarnation: 0, edge: Edge::Closed { reason: "x".into() }, ..node(8, 1, "/root/a") }).unwrap();
    assert_eq!(graph.resolve_any(&path), [thread(8), threads["/root/a"], thread(9)]);
    assert_eq!(graph.spawned_total(), 5);
}

fn check_insert(node: Node, expect: Expect) {
    let (mut graph, _) = graph("/root /root/a /root/b! /root/b/c");
    let before = graph.len();
    let seen = graph.insert(node).map_or_else(|error| error.to_string(), |()| format!("{} agents", graph.len()));
    expect.assert_eq(&seen.replace("00000000-0000-7000-8000-000000000", "#"));
    assert!(seen.ends_with("agents") || graph.len() == before);
}

#[test]
fn insertions() {
    check_insert(node(5, 2, "/root/a/x"), expect!["5 agents"]);
    check_insert(node(2, 1, "/root/a"), expect!["4 agents"]);
    check_insert(
        node(2, 1, "/root/z"),
        expect!["agent #002 is already in the tree as /root/a with another parent, path, incarnation or order"],
    );
    check_insert(
        node(2, 3, "/root/a"),
        expect!["agent #002 is already in the tree as /root/a with another parent, path, incarnation or order"],
    );
    check_insert(
        node(5, 77, "/root/x"),
        expect!["/root/x names a parent #077 that is not in the tree; add parents before their children"],
    );
    check_insert(
        node(5, 1, "/root/a/x"),
        expect!["/root/a/x is not a child path of /root: it must be that path and one name"],
    );
    check_insert(
        node(5, 2, "/root/x"),
        expect!["/root/x is not a child path of /root/a: it must be that path and one name"],
    );
    check_insert(
        node(5, 1, "/root"),
        expect!["/root does not fit its parent: the root has none and lives at /root, everybody else has one"],
    );
    check_insert(node(5, 0, "/root"), expect!["the tree has a root already: #001"]);
    check_insert(node(5, 5, "/root/x"), expect!["/root/x would be its own ancestor"]);
    check_insert(
        node(5, 1, "/root/a"),
        expect!["/root/a is taken by an open agent: choose another name, or close that one first"],
    );
    check_insert(Node { edge: Edge::Closed { reason: "x".into() }, ..node(5, 1, "/root/a") }, expect!["5 agents"]);
    check_insert(node(5, 1, "/root/b"), expect!["5 agents"]);
    check_insert(node(5, 3, "/root/b/c"), expect!["5 agents"]);
}

#[derive(Clone, Debug)]
enum Step {
    Spawn { parent: usize, name: usize },
    Close(usize),
    Late(usize),
    LateClosed(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<usize>(), 0..3usize).prop_map(|(parent, name)| Step::Spawn { parent, name }),
        1 => any::<usize>().prop_map(Step::Close),
        1 => any::<usize>().prop_map(Step::Late),
        1 => any::<usize>().prop_map(Step::LateClosed),
    ]
}

/// The same tree as a plain list: parent by place, open or not. Everything is asked by walking it whole.
#[derive(Default)]
struct Model {
    agents: Vec<(Option<usize>, AgentPath, bool)>,
}

impl Model {
    fn up(&self, at: usize) -> Vec<usize> {
        let mut way = vec![at];
        while let Some(parent) = self.agents[way[way.len() - 1]].0 {
            way.push(parent);
        }
        way
    }

    fn reachable(&self, at: usize) -> bool {
        self.up(at).iter().all(|n| self.agents[*n].2)
    }

    fn holder(&self, path: &AgentPath) -> Option<usize> {
        let holders: Vec<usize> =
            (0..self.agents.len()).filter(|n| self.agents[*n].1 == *path && self.reachable(*n)).collect();
        assert!(holders.len() <= 1, "{path} is held twice");
        holders.first().copied()
    }
}

fn at(n: usize) -> ThreadId {
    thread(u32::try_from(n).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Any sequence of spawning, closing and reading late gives what the plain list gives.
    #[test]
    fn like_a_plain_list(steps in proptest::collection::vec(step(), 0..60)) {
        let mut graph = Graph::new();
        let mut model = Model::default();
        graph.insert(Node { thread: at(0), ..node(0, 0, "/root") }).unwrap();
        model.agents.push((None, AgentPath::root(), true));
        for step in steps {
            let count = model.agents.len();
            match step {
                Step::Spawn { parent, name } => {
                    let parent = parent % count;
                    let name = AgentName::new(["a", "b", "c"][name]).unwrap();
                    let allowed = graph.can_spawn(at(parent), &name, 4, 50);
                    let path = model.agents[parent].1.join(&name).unwrap();
                    let expected = model.reachable(parent) && path.depth() <= 4 && model.holder(&path).is_none();
                    prop_assert_eq!(allowed.is_ok(), expected && count <= 50);
                    if let Ok(path) = allowed {
                        let incarnation = graph.next_incarnation(&path);
                        let earlier = model.agents.iter().filter(|(_, other, _)| *other == path).count();
                        prop_assert_eq!(incarnation as usize, earlier + 1);
                        let parent_thread = Some(at(parent));
                        graph.insert(Node {
                            thread: at(count),
                            parent: parent_thread,
                            path: path.clone(),
                            incarnation,
                            order: count as u64,
                            edge: Edge::Open,
                        }).unwrap();
                        model.agents.push((Some(parent), path, true));
                    }
                }
                Step::Close(n) => {
                    let n = n % count;
                    prop_assert_eq!(graph.close(at(n), "closed"), model.agents[n].2);
                    model.agents[n].2 = false;
                }
                Step::Late(n) => {
                    let known = graph.get(at(n % count)).unwrap().clone();
                    graph.insert(Node { edge: Edge::Open, ..known }).unwrap();
                }
                Step::LateClosed(n) => {
                    let n = n % count;
                    let known = graph.get(at(n)).unwrap().clone();
                    let edge = Edge::Closed { reason: "read late".to_owned() };
                    graph.insert(Node { edge, ..known.clone() }).unwrap();
                    if !known.is_open() {
                        prop_assert_eq!(&graph.get(at(n)).unwrap().edge, &known.edge);
                    }
                    model.agents[n].2 = false;
                }
            }
        }
        let count = model.agents.len();
        prop_assert_eq!(graph.len(), count);
        for n in 0..count {
            let up = model.up(n);
            let (_, path, open) = &model.agents[n];
            prop_assert_eq!(graph.is_open(at(n)), *open);
            prop_assert_eq!(graph.is_reachable(at(n)), model.reachable(n));
            prop_assert_eq!(graph.resolve(path), model.holder(path).map(at));
            prop_assert_eq!(graph.ancestors(at(n)), up[1..].iter().map(|n| at(*n)).collect::<Vec<_>>());
            prop_assert_eq!(graph.closed_by(at(n)).map(|node| node.thread), up.iter().find(|n| !model.agents[**n].2).map(|n| at(*n)));
            prop_assert_eq!(graph.nearest_reachable(at(n)), up.iter().find(|n| model.reachable(**n)).map(|n| at(*n)));
            let below: BTreeSet<ThreadId> = (0..count).filter(|m| *m != n && model.up(*m).contains(&n)).map(at).collect();
            let reached: BTreeSet<ThreadId> =
                (0..count).filter(|m| *m != n && model.up(*m).contains(&n) && model.reachable(*m)).map(at).collect();
            let all = graph.descendants(at(n), Filter::All);
            let open = graph.descendants(at(n), Filter::Open);
            prop_assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), below);
            prop_assert_eq!(open.iter().copied().collect::<BTreeSet<_>>(), reached);
            let depths: Vec<usize> = all.iter().map(|t| graph.get(*t).unwrap().path.depth()).collect();
            prop_assert!(depths.is_sorted());
            // Breadth first: by depth, then as their parents stand, then in the order of their spawning.
            let mut levels = vec![at(n)];
            let mut breadth = Vec::new();
            while !levels.is_empty() {
                levels = levels.iter().flat_map(|up| {
                    (0..count).filter(|m| model.agents[*m].0.map(at) == Some(*up)).map(at).collect::<Vec<_>>()
                }).collect();
                breadth.extend(levels.clone());
            }
            prop_assert_eq!(&all, &breadth);
            prop_assert_eq!(&open, &breadth.into_iter().filter(|t| graph.is_reachable(*t)).collect::<Vec<_>>());
            let same: Vec<ThreadId> = (0..count).filter(|m| model.agents[*m].1 == *path).map(at).collect();
            prop_assert_eq!(graph.resolve_any(path), same);
            let stop = graph.subtree_post_order(at(n));
            prop_assert_eq!(stop.len(), all.len() + 1);
            for (place, thread) in stop.iter().enumerate() {
                prop_assert!(graph.children(*thread).iter().all(|child| stop[..place].contains(child)));
            }
        }
        // What is written down and read back, in whatever order, is the same tree.
        let mut nodes: Vec<Node> = graph.iter().cloned().collect();
        nodes.reverse();
        let (again, problems) = Graph::build(nodes);
        prop_assert_eq!(problems, vec![]);
        prop_assert!(graph.iter().eq(again.iter()));
    }
}
