//! Processes that nobody can end are named, each time.

use protocol::{EventKind, ProcessEvent, ProcessRecord, Token};
use rollout::Record;

use super::house::{House, path, so_far};
use super::player::{Asked, Step, say};
use crate::close::By;

fn alone(_: &Asked) -> Vec<Step> {
    say("done")
}

#[tokio::test]
async fn every_owner_names_what_it_cannot_end() {
    let house = House::new(alone);
    let (tree, _pending) = house.tree("go").await;
    let id = tree.id();
    let token = Token::new();
    let starting = ProcessEvent::Starting { command: "sleep 600".to_owned(), boot_id: "this one".to_owned() };
    let lines = [starting, ProcessEvent::Started { pid: 7, start_time: 7 }];
    let lines = lines.map(|event| Record::Process(ProcessRecord { token, event }));
    house.store.writer(id.root()).unwrap().append_synced(&lines).await.unwrap();
    house.close(tree).await;
    for owner in 0..3 {
        let (tree, report) = house.again(id).await;
        assert_eq!(report.agents[0].survive, ["sleep 600"], "owner {owner}");
        assert_eq!(report.agents[0].swept, [""; 0]);
        house.close(tree).await;
    }
}

#[tokio::test]
async fn a_close_names_what_runs_on() {
    let named = |events: &[(String, EventKind)]| -> Vec<String> {
        let warning =
            |kind: &EventKind| if let EventKind::Warning { message } = kind { Some(message.clone()) } else { None };
        events.iter().filter_map(|(_, kind)| warning(kind)).collect()
    };
    let house = House::new(alone);
    let (tree, pending) = house.tree("go").await;
    tree.go().await;
    pending.answer().await;
    tree.quiet().await;
    house.processes.0.lock().unwrap().insert("/root".to_owned(), 1);
    let mut events = tree.events();
    tree.close(&path("/root"), "enough", &By::User).await.unwrap();
    assert_eq!(named(&so_far(&mut events)), ["a process of /root could not be ended and runs on: sleep (process 1)"]);
    house.finish(tree).await;
}
