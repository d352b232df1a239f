use expect_test::expect;

use super::*;
use crate::brains;

#[test]
fn the_configuration_is_written() {
    let home = Home::new()
        .provider_at("mock", "http://127.0.0.1:1/v1")
        .provider_at("second", "http://127.0.0.1:2/v1")
        .set("max_running", 4)
        .set("models.mock.window", 1000);
    expect![[r#"
        max_running = 4
        model = "mock/model"

        [models.mock]
        window = 1000

        [providers.mock]
        base_url = "http://127.0.0.1:1/v1"
        wire = "responses"

        [providers.second]
        base_url = "http://127.0.0.1:2/v1"
        wire = "responses"
    "#]]
    .assert_eq(&fs::read_to_string(home.path().join("config.toml")).unwrap());
    let server = Server::start(brains::echo);
    let home = home.provider("mock", &server);
    assert!(fs::read_to_string(home.path().join("config.toml")).unwrap().contains(&server.base_url()));
}

#[test]
fn rollouts_are_found_by_path() {
    let home = Home::new();
    let meta = |id: &str, path: &str| {
        format!(
            r#"{{"type":"session_meta","payload":{{"id":"{id}","session_id":"r","agent_path":"{path}"}}}}
{{"type":"mail","payload":{{"n": 1}}}}
{{"type":"mail","payload":{{"n": 2}}}}
{{"type":"mail","payl"#
        )
    };
    home.write("sessions/2026/01/02/rollout-1-r.jsonl", &meta("r", "/root"));
    home.write("sessions/2026/01/02/rollout-2-a.jsonl", &meta("a", "/root/a"));
    home.write("sessions/2026/01/03/rollout-3-b.jsonl", &meta("b", "/root/a"));
    home.write("sessions/2026/01/03/rollout-4-c.jsonl", "no rollout");
    home.write("sessions/2026/01/03/rollout-5-d.jsonl.unborn", &meta("d", "/root/d"));
    let threads: Vec<String> = home.rollouts().iter().map(|rollout| rollout.thread().to_owned()).collect();
    assert_eq!(threads, ["r", "a", "b"]);
    let newest = home.rollout("/root/a");
    assert_eq!((newest.thread(), newest.tree(), newest.path()), ("b", "r", "/root/a"));
    assert_eq!((newest.lines().len(), newest.count("mail"), newest.count("other")), (3, 2, 0));
    assert_eq!(newest.payloads("mail")[1]["n"], 2);
    assert_eq!(newest.raw("mail")[0], r#"{"n": 1}"#);
    let copy = home.copy();
    copy.write("sessions/2026/01/02/rollout-1-r.jsonl", "gone");
    assert_eq!((copy.rollouts().len(), home.rollouts().len()), (2, 3));
    assert_eq!(copy.work(), home.work());
    assert_ne!(copy.path(), home.path());
    assert!(std::panic::catch_unwind(|| home.rollout("/root/zzz").thread().len()).is_err());
}
