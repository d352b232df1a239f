use serde_json::Value;

use super::*;
use crate::reply::Part;

/// A conversation that a loop in memory keeps as the product would, with a tool that answers each call.
struct Talk {
    items: Vec<Item>,
}

impl Talk {
    fn new(task: &str) -> Self {
        Self { items: vec![Item::message(Role::Developer, "be good"), Item::message(Role::User, task)] }
    }

    /// Asks the brain until it gives a final answer; how many requests that took is counted.
    fn run(
        &mut self,
        brain: &dyn Fn(&Request) -> Reply,
        tool: &mut dyn FnMut(&str, &Value) -> String,
    ) -> (String, usize) {
        for count in 1..100 {
            let reply = brain(&Request::example("t", &self.items, &[]));
            let again = brain(&Request::example("t", &self.items, &[]));
            assert_eq!(format!("{reply:?}"), format!("{again:?}"), "a function of the request");
            let mut outputs = Vec::new();
            let mut last = String::new();
            for (index, part) in reply.parts.iter().enumerate() {
                match part {
                    Part::Text { text, .. } => last = [last, text.clone()].concat(),
                    Part::Call { name, arguments } => {
                        let item = Item::function_call(&format!("call_{index}"), name, arguments);
                        let output = tool(name, &serde_json::from_str(arguments).unwrap());
                        outputs.push(Item::output(&item.call().unwrap(), &output));
                        self.items.push(item);
                    }
                    other => panic!("{other:?}"),
                }
            }
            if outputs.is_empty() {
                return (last, count);
            }
            self.items.extend(outputs);
        }
        panic!("it does not end");
    }
}

#[test]
fn echo_and_exec() {
    let mut talk = Talk::new("say it");
    assert_eq!(talk.run(&echo, &mut |_, _| String::new()).0, "echo: say it");
    let mut commands = Vec::new();
    let answer = talk.run(&exec_once("ls"), &mut |name, arguments| {
        commands.push(format!("{name} {arguments}"));
        "a file".into()
    });
    assert_eq!((answer, commands), (("a file".into(), 2), vec![r#"exec_command {"cmd":"ls"}"#.to_owned()]));
}

/// Plays a whole tree: a spawn runs the child to its end at once, a wait hands over what was collected.
fn play(brain: &dyn Fn(&Request) -> Reply, task: &str, agents: &mut usize) -> String {
    let mut results = Vec::new();
    let mut talk = Talk::new(task);
    let (answer, _) = talk.run(brain, &mut |name, arguments| match name {
        "spawn_agent" => {
            *agents += 1;
            results.push(play(brain, arguments["message"].as_str().unwrap(), agents));
            format!(r#"{{"task_name":"/root/{}"}}"#, arguments["task_name"].as_str().unwrap())
        }
        "wait_agent" => results.join("\n"),
        _ => "a file".into(),
    });
    answer
}

#[test]
fn trees_are_grown_and_reported() {
    let mut agents = 0;
    assert_eq!(play(&tree(2, 3), "do it", &mut agents), "3 of 3 children reported");
    assert_eq!(agents, 3 + 9);
    assert_eq!(play(&spawn_n(12, exec_once("ls")), "do it", &mut agents), "12 of 12 children reported");
    assert_eq!(play(&tree(0, 3), "do it", &mut agents), "leaf");
}

#[test]
fn a_child_marks_its_last_words() {
    let brain = spawn_n(1, exec_once("ls"));
    let mut talk = Talk::new(&task(0, "0"));
    assert_eq!(talk.run(&brain, &mut |_, _| "a file".into()).0, "a filedone(0)");
    let mut wrapped = Talk::new(&format!("<mail>\n{}\n</mail>", task(0, "3")));
    assert_eq!(wrapped.run(&brain, &mut |_, _| "a file".into()).0, "a filedone(3)");
}

#[test]
fn failures_do_not_loop() {
    let mut spawns = 0;
    let refused = Talk::new("do it").run(&spawn_n(2, echo), &mut |name, _| {
        spawns += usize::from(name == "spawn_agent");
        "not done: the process ended first".into()
    });
    assert_eq!((refused.0.as_str(), spawns), ("0 of 2 children reported", 2 * MAX_SPAWNS));
    let mut waits = 0;
    let silent = Talk::new("do it").run(&spawn_n(2, echo), &mut |name, _| {
        waits += usize::from(name == "wait_agent");
        r#"{"task_name":"/root/x"}"#.into()
    });
    assert_eq!((silent.0.as_str(), waits), ("0 of 2 children reported", MAX_WAITS + 4));
}

#[test]
fn results_may_come_as_mail() {
    let mut talk = Talk::new("do it");
    talk.items.extend([
        Item::function_call("c", "spawn_agent", &json!({"message": task(0, "0")}).to_string()),
        Item::output(&Item::function_call("c", "spawn_agent", "").call().unwrap(), r#"{"task_name":"/root/child_0"}"#),
        Item::message(Role::User, &format!("<mail kind=\"result\" from=\"/root/child_0\">\n{}\n</mail>", mark("0"))),
    ]);
    assert_eq!(talk.run(&spawn_n(1, echo), &mut |_, _| String::new()), ("1 of 1 children reported".into(), 1));
}
