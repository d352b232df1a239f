use std::time::Instant;

use expect_test::{Expect, expect};
use protocol::{Address, ThreadId};

use super::*;

fn script(text: &str) -> Script {
    Script::parse("script:/s.toml", "/s.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn request(script: &Script, agent: &str, role: &str, items: &[Item]) -> ModelRequest {
    let thread: ThreadId = "01939d5e-0000-7000-8000-000000000001".parse().unwrap();
    ModelRequest {
        tree: thread.into(),
        agent: Address { path: agent.parse().unwrap(), thread },
        role: role.to_owned(),
        head: script.head(&[]),
        input: items.iter().cloned().collect(),
        max_output: None,
        effort: None,
    }
}

async fn play(script: &Script, agent: &str, role: &str, items: &[Item]) -> String {
    let events: Vec<_> = script.stream(request(script, agent, role, items)).collect().await;
    let line = |event: Result<ModelEvent, ModelError>| match event {
        Ok(ModelEvent::Item(item)) => Some(item.raw().to_owned()),
        Ok(ModelEvent::Done { usage, .. }) => Some(format!("done {}/{}", usage.input, usage.output)),
        Ok(_) => None,
        Err(error) => Some(format!("{:?}: {}", error.kind, error.message)),
    };
    events.into_iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

fn user(text: &str) -> Item {
    Item::message(Role::User, text)
}

/// Which of the rules, each of which answers with its number, takes this conversation.
async fn check(rules: &[&str], agent: &str, items: &[Item], expect: usize) {
    let rule = |(n, rule)| format!("[[rule]]\n{rule}\nreply = [{{ text = \"<{n}>\" }}]\n");
    let text = rules.iter().enumerate().map(rule).collect::<Vec<_>>().concat();
    let seen = play(&script(&text), agent, "worker", items).await;
    assert!(seen.contains(&format!("<{expect}>")), "{agent} {items:?}: {seen}");
}

#[tokio::test]
async fn the_first_rule_that_matches() {
    let call = Item::function_call("c", "exec_command", "{\"cmd\":\"secret words\"}");
    let output = Item::output(&call.call().unwrap(), "Process exited with code 1\nOutput:\nno such file");
    let say = Item::message(Role::Assistant, "hm");
    let one = vec![user("fix it"), call.clone(), output.clone()];
    let rules = |wanted: &'static str| [wanted, ""];
    let both = [
        ("agent = \"/root\"", false),
        ("agent = \"/root/*\"", true),
        ("agent = \"/root/**\"", true),
        ("role = \"worker\"", true),
        ("role = \"work\"", false),
        ("last = \"code 1\"", true),
        ("last = \"code*no such\"", true),
        ("last = \"fix it\"", false),
        ("contains = \"fix it\"", true),
        ("contains = [\"fix it\", \"no such\"]", true),
        ("contains = [\"fix it\", \"absent\"]", false),
        ("contains = \"secret words\"", false),
        ("lacks = \"absent\"", true),
        ("lacks = [\"absent\", \"fix it\"]", false),
        ("after = 1", true),
        ("after = 0", false),
        ("after = { min = 1, max = 2 }", true),
        ("after = { min = 2 }", false),
        ("after = { max = 0 }", false),
        ("step = 1", true),
        ("capture = \"exited with code {code}\"", true),
        ("capture = \"signal {code}\"", false),
    ];
    for (rule, fits) in both {
        check(&rules(rule), "/root/a", &one, usize::from(!fits)).await;
    }
    // A new task: replies are counted on, steps anew.
    let two = [&one[..], &[say, user("and now this")]].concat();
    check(&["step = 1", "after = 2\nstep = 0", ""], "/root/a", &two, 1).await;
}

#[tokio::test]
async fn replies() {
    let script = script(
        r#"
        [[rule]]
        capture = ["found in {file}:", "line {n}"]
        delay_ms = 0
        usage = { input = 10, cached_input = 5, output = 2 }
        reply = [
            { commentary = "I look at ${file}" },
            { call = "exec_command", cmd = "sed -n ${n}p ${file}; echo $HOME $${HOME} $$ $" },
            { call = "update", arguments = { deep = [{ path = "${file}" }], n = 3, on = true } },
            { call = "broken", arguments = "{not json ${n}" },
            { call = "none" },
            { custom = "apply_patch", input = "*** ${file}\n" },
            { text = "${agent} ${role}: ${prompt} / ${task} / ${last}" },
        ]
        "#,
    );
    let items = [
        user("go \"on\""),
        user("<agent_mail kind=\"message\" from=\"/root/b\">\nfound in a\"b.rs: line 7\n</agent_mail>"),
    ];
    expect![[r#"
        {"content":[{"text":"I look at a\"b.rs","type":"output_text"}],"phase":"commentary","role":"assistant","type":"message"}
        {"type":"function_call","call_id":"call_0_1","name":"exec_command","arguments":"{\"cmd\":\"sed -n 7p a\\\"b.rs; echo $HOME ${HOME} $$ $\"}"}
        {"type":"function_call","call_id":"call_0_2","name":"update","arguments":"{\"deep\":[{\"path\":\"a\\\"b.rs\"}],\"n\":3,\"on\":true}"}
        {"type":"function_call","call_id":"call_0_3","name":"broken","arguments":"{not json 7"}
        {"type":"function_call","call_id":"call_0_4","name":"none","arguments":"{}"}
        {"type":"custom_tool_call","call_id":"call_0_5","name":"apply_patch","input":"*** a\"b.rs\n"}
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"/root default: go \"on\" / go \"on\" / found in a\"b.rs: line 7"}]}
        done 10/2"#]]
    .assert_eq(&play(&script, "/root", "default", &items).await);
    // A script is a function of the request: asked again it says the same.
    let again = play(&script, "/root", "default", &items).await;
    assert_eq!(again, play(&script, "/root", "default", &items).await);
}

#[tokio::test]
async fn usage_is_estimated() {
    let script = script("[[rule]]\nreply = [{ text = \"ok\" }]");
    let item = user("hello");
    let input = (item.raw().len() + "[]".len()).div_ceil(4);
    let output = Item::message(Role::Assistant, "ok").raw().len().div_ceil(4);
    let seen = play(&script, "/root", "default", &[item]).await;
    assert!(seen.ends_with(&format!("done {input}/{output}")), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn delay() {
    let script = script("[[rule]]\ndelay_ms = 60000\nreply = [{ text = \"ok\" }]");
    let (real, virtual_time) = (Instant::now(), tokio::time::Instant::now());
    play(&script, "/root", "default", &[]).await;
    assert_eq!(virtual_time.elapsed().as_secs(), 60);
    assert!(real.elapsed().as_secs() < 60);
}

#[tokio::test]
async fn no_rule() {
    let script = script("[[rule]]\nafter = 3\nreply = [{ text = \"ok\" }]");
    let seen = play(&script, "/root/a", "worker", &[user("please\nhelp")]).await;
    expect!["Unscripted: the script /s.toml has no reply for /root/a (role worker) after 0 replies, 0 of them since its newest task; its last item is: please help"]
        .assert_eq(&seen);
}

fn check_wrong(text: &str, expect: Expect) {
    let error = Script::parse("script:/s.toml", "/s.toml", text).unwrap_err();
    assert!(!error.hints().is_empty());
    expect.assert_eq(&error.to_string());
}

#[test]
fn mistakes_name_file_and_line() {
    let ok = "[[rule]]\nreply = [{ text = \"x\" }]\n\n";
    check_wrong("", expect!["/s.toml, line 1: a script needs at least one [[rule]]"]);
    check_wrong(&format!("{ok}[[rule]\n"), expect!["/s.toml, line 4: unclosed array table, expected `]`"]);
    check_wrong(
        &format!("{ok}[[rule]]\nrole = \"a\"\nagnet = \"/root\"\nreply = []\n"),
        expect![
            "/s.toml, line 6: unknown field `agnet`, expected one of `agent`, `role`, `last`, `contains`, `lacks`, `after`, `step`, `capture`, `reply`, `delay_ms`, `usage`"
        ],
    );
    check_wrong(&format!("{ok}[[rule]]\nrole = \"a\"\n"), expect!["/s.toml, line 4: missing field `reply`"]);
    check_wrong(
        &format!("{ok}[[rule]]\nreply = []\n"),
        expect!["/s.toml, line 4: `reply` is empty; a model that says nothing is `reply = [{ text = \"\" }]`"],
    );
    check_wrong(
        &format!("{ok}[[rule]]\nafter = \"x\"\nreply = [{{ text = \"\" }}]\n"),
        expect!["/s.toml, line 5: expected a number, or { min = N, max = N } with one or both of them"],
    );
    check_wrong(
        &format!("{ok}[[rule]]\nafter = {{ min = 3, max = 2 }}\nreply = [{{ text = \"\" }}]\n"),
        expect!["/s.toml, line 4: `after`: min is larger than max, so this never matches"],
    );
    let piece = |entry: &str| format!("{ok}[[rule]]\nreply = [\n  {{ text = \"x\" }},\n  {entry},\n]\n");
    check_wrong(
        &piece("{ text = \"a\", commentary = \"b\" }"),
        expect![
            "/s.toml, line 7: an entry of `reply` has one of `text`, `commentary`, `call` (with `arguments` or `cmd`) and `custom` (with `input`)"
        ],
    );
    check_wrong(
        &piece("{ text = \"a\", cmd = \"b\" }"),
        expect![
            "/s.toml, line 7: an entry of `reply` has one of `text`, `commentary`, `call` (with `arguments` or `cmd`) and `custom` (with `input`)"
        ],
    );
    check_wrong(
        &piece("{ call = \"a\", cmd = \"b\", arguments = {} }"),
        expect!["/s.toml, line 7: a call takes `arguments` or `cmd`, not both"],
    );
    check_wrong(
        &piece("{ call = \"a\", arguments = 3 }"),
        expect!["/s.toml, line 7: `arguments` is a table, or a text that is sent as it stands"],
    );
    check_wrong(
        &piece("{ call = \"a\", cmd = \"echo ${HOME}\" }"),
        expect![
            "/s.toml, line 7: `${HOME}` is not known; known here: prompt, task, last, agent, role. A shell variable is written `$NAME` or `$${NAME}`"
        ],
    );
    check_wrong(
        &piece("{ txet = \"a\" }"),
        expect![
            "/s.toml, line 7: unknown field `txet`, expected one of `text`, `commentary`, `call`, `arguments`, `cmd`, `custom`, `input`"
        ],
    );
    check_wrong(
        "[[rule]]\ncapture = \"x {last}\"\nreply = [{ text = \"\" }]",
        expect!["/s.toml, line 1: the name `last` is given twice in `capture`, or is one that always exists"],
    );
    check_wrong(
        "[[rule]]\ncapture = \"{a}\"\nreply = [{ text = \"\" }]",
        expect!["/s.toml, line 1: `{a}` needs some text before `{a}`, to know where it begins"],
    );
}
