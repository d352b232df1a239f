use std::path::Path;

use expect_test::{Expect, expect};

use super::machine::{Cpu, disk, peak_of};
use super::stats::Summary;
use super::table::{MARKERS, put, table};
use super::*;

#[test]
fn names_are_read_back() {
    for one in scenario::all() {
        assert_eq!(one.to_string().parse(), Ok(one));
    }
}

#[test]
fn names() {
    fn check(names: &str, expect: Expect) {
        let names: Vec<String> = names.split(',').map(str::to_owned).collect();
        let chosen = scenario::chosen(&names);
        let said = chosen.map(|all| all.iter().map(Scenario::to_string).collect::<Vec<_>>().join(" "));
        expect.assert_eq(&said.unwrap_or_else(|error| format!("error: {}", error.split(';').next().unwrap())));
    }
    check("echo", expect!["echo"]);
    check("exec:7,mail", expect!["exec:7 mail:one mail:each"]);
    check("show,spawn:9/default", expect!["show:1000 show:1000/lost spawn:9/default"]);
    check("list:7/lost,takeover:8", expect!["list:7/lost takeover:8"]);
    check("wake:7/lost,wake:8,body:9/chat", expect!["wake:7/lost wake:8 body:9/chat"]);
    check("tree:2x3", expect!["tree:2x3"]);
    for wrong in [
        "",
        "ech",
        "echo:3",
        "exec:",
        "exec:x",
        "exec:7/default",
        "spawn:9/raised",
        "mail:two",
        "tree:3",
        "list:3/json",
        "body:3",
    ] {
        let error = scenario::chosen(&[wrong.to_owned()]).unwrap_err();
        assert!(error.starts_with(&format!("there is no scenario `{wrong}`")), "{error}");
    }
    check("exec:0", expect!["error: `exec:0`: a size is from 1 to 10000"]);
    check("tree:9x9", expect!["error: `tree:9x9` is deeper than a tree may be, or has more than 10000 agents"]);
}

#[test]
fn agents_and_calls_of_a_scenario() {
    fn check(name: &str, agents: usize, calls: usize) {
        let one: Scenario = name.parse().unwrap();
        assert_eq!((one.agents(), one.calls()), (agents, calls), "{name}");
    }
    check("echo", 1, 0);
    check("exec:50", 1, 50);
    check("spawn:4", 5, 4);
    check("tree:1x4", 5, 4);
    check("tree:3x4", 1 + 4 + 16 + 64, 64);
    check("tree:2x1", 3, 1);
    check("idle:4", 5, 36);
}

#[test]
fn medians() {
    fn check(values: &[f64], expect: Expect) {
        expect.assert_eq(&Summary::of(values).map_or("nothing".to_owned(), |summary| format!("{summary:.1}")));
    }
    check(&[], expect!["nothing"]);
    check(&[2.0], expect!["2.0 (2.0..2.0)"]);
    check(&[9.0, 1.0, 2.0], expect!["2.0 (1.0..9.0)"]);
    check(&[4.0, 1.0, 2.0, 9.0], expect!["3.0 (1.0..9.0)"]);
}

#[test]
fn a_table() {
    let sample = |wall, peak| Sample { cpu: 0.25, peak, others: 0.1, ..Sample::of(wall) };
    let exec = Row {
        name: "exec:50".to_owned(),
        samples: vec![sample(0.5, Some(20.4)), sample(0.4, Some(22.6)), sample(0.6, Some(21.0))],
        units: Some((50, "call")),
        reference: Some("4.17 s"),
    };
    let mail = Row {
        name: "mail:one".to_owned(),
        samples: vec![sample(0.5, None)],
        units: Some((1000, "mail")),
        reference: None,
    };
    let back = Row {
        name: "reopen:100".to_owned(),
        samples: [0.031, 0.029, 0.040].map(|first| Sample { first: Some(first), ..sample(0.5, None) }).to_vec(),
        units: None,
        reference: None,
    };
    let gap = Row {
        name: "gap:10".to_owned(),
        samples: vec![Sample { first: Some(0.1), ..sample(0.5, None) }],
        units: Some((50, "call")),
        reference: None,
    };
    let idle = Row {
        name: "idle:400".to_owned(),
        samples: [11.0, 13.25, 20.0].map(|kib| Sample { resting: Some(kib), ..sample(0.5, Some(30.0)) }).to_vec(),
        units: None,
        reference: None,
    };
    expect![[r#"
        | scenario | wall s | CPU s | peak RSS MiB | per unit | others | the reference |
        |---|---|---|---|---|---|---|
        | exec:50 | 0.500 (0.400..0.600) | 0.25 (0.25..0.25) | 21 (20..23) | 10.0 ms / call | 0.20 | 4.17 s |
        | mail:one | 0.500 (0.500..0.500) | 0.25 (0.25..0.25) | - | 500 us / mail | 0.20 | - |
        | reopen:100 | 0.500 (0.500..0.500) | 0.25 (0.25..0.25) | - | 31.0 ms to the first request | 0.20 | - |
        | gap:10 | 0.500 (0.500..0.500) | 0.25 (0.25..0.25) | - | 100.0 ms to the first request, then 8.0 ms / call | 0.20 | - |
        | idle:400 | 0.500 (0.500..0.500) | 0.25 (0.25..0.25) | 30 (30..30) | 13.2 KiB / agent | 0.20 | - |
    "#]]
    .assert_eq(&table(&[exec, mail, back, gap, idle]));
}

#[test]
fn figures_go_between_the_markers() {
    let [begin, end] = MARKERS;
    let page = format!("# Page\n\n{begin}\nold\n{end}\n\nrest\n");
    let new = put(&page, "new\n").unwrap();
    assert_eq!(new, format!("# Page\n\n{begin}\n\nnew\n\n{end}\n\nrest\n"));
    assert_eq!(put(&new, "new").unwrap(), new);
    assert_eq!(put("# Page\n", "new"), None);
    assert_eq!(put(&format!("{end}\n{begin}\n"), "new"), None);
}

#[test]
fn the_page_has_its_markers() {
    let page = fs::read_to_string(crate::root().join(PAGE)).unwrap();
    assert!(put(&page, "new").is_some());
}

#[test]
fn what_linux_writes() {
    let own = "12 (a) b) S 1 1 1 0 -1 4194560 100 0 0 0 150 50 30 20 20 0 1 0 5 0 0";
    let cpu = Cpu::parse(own, "cpu  1000 0 500 9000 100 10 20 70 0 0\ncpu0 1 2 3\n").unwrap();
    assert_eq!(cpu, Cpu { machine: 16.0, own: 2.0, children: 0.5 });
    let later = Cpu { machine: 20.0, own: 2.5, children: 1.5 };
    assert!((later.others(cpu) - 2.5).abs() < 1e-9);
    assert_eq!(Cpu::parse("12 (a S 1", "cpu 1 2 3"), None);
    assert_eq!(peak_of("VmPeak:\t 9 kB\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n"), Some(2.0));
    assert_eq!(peak_of("Name:\tdone\nState:\tZ (zombie)\n"), None);
    let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tm xfs rw 0 0\n";
    assert_eq!(disk(mounts, Path::new("/tmp/bench")).as_deref(), Some("tmpfs"));
    assert_eq!(disk(mounts, Path::new("/somewhere")).as_deref(), Some("ext4"));
}

#[test]
fn scripts_are_toml() {
    for one in scenario::all() {
        let text = script::script(one);
        let parsed: toml::Table = text.parse().unwrap();
        assert!(parsed["rule"].as_array().is_some_and(|rules| !rules.is_empty()), "{one}");
    }
    expect![[r#"
        [[rule]]
        agent = "/root"
        step = 0
        reply = [
            { call = "spawn_agent", arguments = { task_name = "w0", message = "go" } },
        ]

        [[rule]]
        agent = "/root"
        last = '"woke":"settled"'
        reply = [
            { text = "measured" },
        ]

        [[rule]]
        agent = "/root"
        last = '"woke":"timeout"'
        reply = [
            { text = "gave up" },
        ]

        [[rule]]
        agent = "/root"
        reply = [
            { call = "wait_agent", arguments = { timeout_ms = 60000 } },
        ]

        [[rule]]
        agent = "/root/*"
        step = { max = 0 }
        reply = [
            { call = "exec_command", cmd = "true" },
        ]

        [[rule]]
        agent = "/root/*"
        reply = [
            { text = "done" },
        ]

        [[rule]]

        reply = [
            { text = "measured" },
        ]
    "#]]
    .assert_eq(&script::script(Scenario::Spawn(1, Limits::Raised)));
}

#[test]
fn generated_homes_are_as_real_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (home, work) = (folder.path().join("home"), folder.path().join("work"));
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    tokio.block_on(home::agents(&home, &work, 12)).unwrap();
    verify::verify(&home, Expected { agents: 12, calls: 0, results: 0 }).unwrap();
    let paths: Vec<_> = home::store(&home).unwrap().scan().unwrap().heads;
    assert!(paths.iter().any(|head| head.meta.agent_path.as_str() == "/root/w1/w11"));
    assert!(verify::verify(&home, Expected { agents: 12, calls: 1, results: 0 }).is_err());
}
