//! Budgets: the request that would go beyond one is not sent, in one agent, below a role, in the whole tree, and after
//! a crash.

use std::fs;

use serde_json::{Value, json};
use testkit::{Gate, Home, Reply, Request, Run, Server};

use crate::play::{Play, command, end, exec, parent, requests, spawn, spawns, tree};

/// A home whose models cost a dollar for a million tokens in and ten for as many out.
fn home(server: &Server) -> Home {
    let priced = crate::play::home(server).set("models.mock/model.input_usd_per_mtok", 1.0);
    priced.set("models.mock/model.output_usd_per_mtok", 10.0)
}

/// The upper bound of output that a request names.
fn bound(request: &Request) -> Option<u64> {
    request.json()["max_output_tokens"].as_u64()
}

/// Works on without an end; each request costs 4,000 tokens in and 1,000 out.
fn works_on(_: &Request) -> Reply {
    exec("true").usage(4_000, 1_000, 1_000)
}

fn budget(home: &Home, what: &str) -> Value {
    tree(home)["budget"][what].clone()
}

/// Who was reminded of what is left, in the order of their last request.
fn reminders(request: &Request) -> Vec<String> {
    let texts = request.items().iter().map(protocol::Item::text);
    let told = texts.filter_map(|text| text.strip_prefix("<budget_reminder>\nLess than ").map(str::to_owned));
    told.map(|text| text.split(" left").next().unwrap_or_default().to_owned()).collect()
}

fn over_budget(run: &Run) {
    run.assert_code(4);
    assert!(run.stderr.contains("error: over_budget: the budget of the tree is used up"), "{}", run.stderr);
    assert!(run.stderr.contains("--continue"), "{}", run.stderr);
}

#[test]
fn a_run_ends_where_its_budget_does() {
    let server = Play::new()
        .thinks(
            "Work",
            |request| {
                if request.heard("You were cut off") { "done after all".into() } else { works_on(request) }
            },
        )
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "--budget-tokens", "120000", "Work"]).run();
    over_budget(&run);
    let all = requests(&server, "Work");
    // 24 of 5,000 tokens are 120,000, and the last has to leave room for the least output.
    assert!((22..=24).contains(&all.len()), "{}", all.len());
    let bounds: Vec<Option<u64>> = all.iter().map(bound).collect();
    assert_eq!(bounds[0], None, "there was room for any reply");
    assert!(bounds.iter().rev().take(2).all(Option::is_some), "the last ones were bounded: {bounds:?}");
    assert_eq!(
        reminders(all.last().unwrap()),
        ["50 % of the budget of the tree is", "25 % of the budget of the tree is", "10 % of the budget of the tree is"]
    );
    let spent = budget(&home, "tokens");
    assert_eq!((spent["limit"].as_u64(), spent["reserved"].as_u64()), (Some(120_000), Some(0)));
    assert_eq!(spent["used"].as_u64(), Some(5_000 * all.len() as u64), "{spent}");
    assert!(spent["used"].as_u64() <= Some(120_000), "{spent}");
    let shown = command(&home, &["tree"]).run_ok();
    assert!(shown.stdout.contains("of 120.0k tokens used"), "{}", shown.stdout);

    // The limit stands in the tree: another process keeps it too.
    let again = command(&home, &["resume", "more"]).run();
    over_budget(&again);
    assert_eq!(requests(&server, "Work").len(), all.len(), "nothing was sent");
    // With more, the task goes on.
    let more = command(&home, &["resume", "--continue", "--budget-tokens", "200000"]).run_ok();
    assert!(more.stdout.contains("done after all"), "{more:?}");
    end(&home, &server, &more);
}

#[test]
fn children_share_what_the_tree_has() {
    let names: Vec<String> = (0..6).map(|n| format!("c{n}")).collect();
    let children: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "work on")).collect();
    let marks: Vec<String> = names.iter().map(|name| format!("from=\"/root/{name}\"")).collect();
    let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
    let server = Play::new()
        .thinks("Lead", parent(spawns(&children), &marks, "all have ended"))
        .thinks("work on", works_on)
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "--budget-tokens", "150000", "Lead"]).run();
    over_budget(&run);
    let used = budget(&home, "tokens")["used"].as_u64().unwrap();
    assert!((130_000..=150_000).contains(&used), "{used}");
    let rows = tree(&home)["agents"].as_array().unwrap().clone();
    let counted: u64 = rows
        .iter()
        .map(|row| row["tokens"]["input"].as_u64().unwrap() + row["tokens"]["output"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, used, "every agent's tokens are shown");
    assert!(rows.iter().skip(1).all(|row| row["tokens"]["cached_input"].as_u64() > Some(0)), "{rows:?}");
    // Whoever was stopped gave its giver exactly one result that says so.
    let results = home.rollout("/root").payloads("mail");
    let results: Vec<&Value> = results.iter().filter(|mail| mail["kind"] == "result").collect();
    assert_eq!(results.len(), 6);
    assert!(results.iter().all(|mail| mail["outcome"] == "over_budget"), "{results:?}");
    end(&home, &server, &run);
}

#[test]
fn a_role_bounds_its_agent_and_everybody_below() {
    let deeper = parent(spawns(&[("deep", "dig")]), &["from=\"/root/a/deep\""], "got something");
    let cheap = Reply::new().call("spawn_agent", json!({"task_name": "a", "message": "look", "agent_type": "thrifty"}));
    let server = Play::new()
        .thinks("Lead", parent(cheap, &["from=\"/root/a\""], "fine"))
        .thinks("look", move |request| deeper(request).usage(2_000, 0, 100))
        .thinks("dig", works_on)
        .serve();
    let home = home(&server);
    fs::create_dir(home.path().join("agents")).unwrap();
    home.write("agents/thrifty.toml", "description = \"d\"\ninstructions = \"i\"\nbudget_tokens = 30000\n");
    let run = command(&home, &["run", "Lead"]).run_ok();
    assert_eq!(run.stdout, "fine\n");
    let result = home.rollout("/root/a").payloads("mail");
    let result = result.iter().find(|mail| mail["kind"] == "result").unwrap();
    let body = result["body"].as_str().unwrap();
    assert!(body.contains("the budget of /root/a and everybody below it is used up"), "{body}");
    assert_eq!(tree(&home)["budget"], Value::Null, "the tree itself has none");
    end(&home, &server, &run);
}

#[test]
fn no_single_agent_goes_beyond_its_own() {
    let server = Play::new()
        .thinks("Lead", parent(spawns(&[("a", "work on")]), &["from=\"/root/a\""], "fine"))
        .thinks("work on", works_on)
        .serve();
    let home = home(&server).set("agent_budget_tokens", 20_000);
    let run = command(&home, &["run", "Lead"]).run_ok();
    let rows = tree(&home)["agents"].as_array().unwrap().clone();
    assert!(rows[1]["tokens"]["input"].as_u64() <= Some(16_000), "{rows:?}");
    assert!(requests(&server, "Lead").last().unwrap().heard("the budget of /root/a alone is used up"));
    end(&home, &server, &run);
}

#[test]
fn money_is_counted_by_the_prices() {
    let server = Play::new().thinks("Work", works_on).serve();
    let home = home(&server);
    // A request is 4,000 tokens in, of them 1,000 cached at the full price, and 1,000 out: 1.4 cents.
    let run = command(&home, &["run", "--budget-usd", "0.10", "Work"]).run();
    over_budget(&run);
    let spent = budget(&home, "usd");
    let used = spent["used"].as_f64().unwrap();
    assert!((0.07..=0.10).contains(&used), "{spent}");
    assert!((tree(&home)["agents"][0]["cost_usd"].as_f64().unwrap() - used).abs() < 1e-9);

    let unknown = crate::play::home(&server);
    let run = command(&unknown, &["run", "--budget-usd", "1", "Work"]).run();
    run.assert_code(2);
    assert!(run.stderr.contains("the budget is in dollars, and mock/model has no price"), "{}", run.stderr);
    assert_eq!(unknown.rollouts().len(), 0, "no tree is left behind");
}

#[test]
fn a_reply_that_fills_what_is_left_is_not_taken_for_an_answer() {
    let server = Play::new().says("Talk", [Reply::new().text("and so on and").usage(10_000, 0, 9_000)]).serve();
    let home = home(&server);
    let run = command(&home, &["run", "--budget-tokens", "9000", "Talk"]).run();
    run.assert_code(4);
    assert_eq!(run.stdout, "and so on and\n", "what there is of it is shown");
    assert!(run.stderr.contains("the reply was cut off at"), "{}", run.stderr);
    let shown = command(&home, &["tree"]).run_ok();
    assert!(shown.stdout.contains("/root  over budget · default"), "{}", shown.stdout);
    assert_eq!(tree(&home)["agents"][0]["outcome"], "over_budget");
    end(&home, &server, &run);
}

#[test]
fn what_a_crash_cut_off_counts_as_it_was_estimated() {
    let [asked, never] = [Gate::new(), Gate::new()];
    let (told, held) = (asked.clone(), never.clone());
    let server = Play::new()
        .thinks("Work", move |request| {
            told.open();
            if request.heard("carry this on") {
                Reply::new().text("went on")
            } else {
                Reply::new().text("x").wait_for(&held)
            }
        })
        .serve();
    let home = home(&server);
    let killed = command(&home, &["run", "--budget-tokens", "30000", "Work"]).spawn();
    asked.wait();
    killed.kill();
    killed.wait();
    let reserved = home.rollout("/root").payloads("usage");
    assert_eq!((reserved.len(), reserved[0]["stage"].as_str()), (1, Some("reserved")));
    let estimate = reserved[0]["input"].as_u64().unwrap() + reserved[0]["output"].as_u64().unwrap();
    assert!(estimate > 16_384, "{reserved:?}");
    assert_eq!(budget(&home, "tokens")["used"], estimate, "before anybody takes it over");
    command(&home, &["resume"]).run_ok();
    assert_eq!(budget(&home, "tokens")["used"], estimate, "and after");
    let row = tree(&home)["agents"][0].clone();
    assert_eq!((row["tokens"]["output"].as_u64(), row["estimated"]["output"].as_u64()), (Some(0), Some(16_384)));
    never.open();
    // Less than a usual reply is left, so the next request is bounded.
    let run = command(&home, &["resume", "carry this on"]).run_ok();
    assert!(bound(&server.requests().pop().unwrap()).is_some_and(|most| most < 30_000 - estimate));
    end(&home, &server, &run);
}

#[test]
fn a_server_that_does_not_count_is_counted_for() {
    let server = Play::new().thinks("Work", |_| exec("true").no_usage()).serve();
    let home = home(&server);
    let run = command(&home, &["run", "--budget-tokens", "40000", "Work"]).run();
    over_budget(&run);
    let used = budget(&home, "tokens")["used"].as_u64().unwrap();
    assert!((20_000..=40_000).contains(&used), "{used}");
    end(&home, &server, &run);
}

#[test]
fn a_refused_request_costs_nothing() {
    let server = Play::new()
        .says("Work", [Reply::new().text("fine").usage(10, 0, 10)])
        .thinks("Never", |_| Reply::new().status(400).body("{}"))
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "--budget-tokens", "25000", "Never"]).run();
    run.assert_code(1);
    assert_eq!(budget(&home, "tokens")["used"], 0);
    // Overloaded twice, then served: one reservation, one bill.
    let mut times = 0;
    let replies = std::sync::Mutex::new(move || {
        times += 1;
        times
    });
    let busy = Server::start(move |_| {
        if (replies.lock().unwrap())() < 3 {
            Reply::new().status(503)
        } else {
            Reply::new().text("fine").usage(10, 0, 10)
        }
    });
    let home = self::home(&busy);
    let run = command(&home, &["run", "--budget-tokens", "25000", "Work"]).run_ok();
    assert_eq!(budget(&home, "tokens")["used"], 20);
    assert_eq!(home.rollout("/root").count("usage"), 2);
    end(&home, &busy, &run);
}

#[test]
fn a_child_in_another_model_needs_a_price_too() {
    let mut other = spawn("a", "x");
    other["model"] = json!("mock/other");
    let server = Play::new()
        .thinks("Lead", move |request| match request.outputs().first() {
            None => Reply::new().call("spawn_agent", other.clone()),
            Some(output) => Reply::new().text(output),
        })
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "--budget-usd", "1", "Lead"]).run_ok();
    assert!(run.stdout.contains("mock/other has no price"), "{}", run.stdout);
    end(&home, &server, &run);
}
