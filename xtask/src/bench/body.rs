//! What building a request costs, by the length of the conversation. Nothing is sent: the stream is dropped before it is
//! polled, when its body stands.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use http::{Http, Proxies};
use model::{Catalog, ModelRequest, Provider, Transcript};
use protocol::{Address, AgentPath, Item, Role, ThreadId, TreeId};
use stdx::AbsPath;

use super::machine::Cpu;
use super::measure::Sample;
use super::scenario::Wire;

/// Requests of a run. Before each the conversation grows by a call and its output, as an agent's does.
pub(super) const REQUESTS: usize = 100;

/// Bytes of an output: what a short command prints.
const OUTPUT: usize = 150;

/// Asks once.
type Build = Box<dyn Fn(&Transcript)>;

/// One run, in this process.
pub(super) fn run(work: &Path, items: usize, wire: Wire) -> Result<Sample> {
    let mut input = Transcript::default();
    input.push(Item::message(Role::Developer, "You are an agent."));
    input.push(Item::message(Role::User, "go"));
    for n in 0..items / 2 {
        grow(&mut input, n)?;
    }
    let build = builder(work, wire)?;
    let before = Cpu::now()?;
    let began = Instant::now();
    for n in 0..REQUESTS {
        grow(&mut input, items / 2 + n)?;
        build(&input);
    }
    let wall = began.elapsed().as_secs_f64();
    let after = Cpu::now()?;
    Ok(Sample { cpu: after.own - before.own, others: after.others(before), ..Sample::of(wall) })
}

fn grow(input: &mut Transcript, n: usize) -> Result<()> {
    let call = Item::function_call(&format!("call_{n}"), "exec_command", r#"{"cmd":"make check"}"#);
    let made = call.call().context("a call is none")?;
    input.push(call);
    input.push(Item::output(&made, &"a line of what a command has printed, some words long\n".repeat(3)[..OUTPUT]));
    Ok(())
}

/// Does what an agent does to ask, up to the point where something is sent.
fn builder(work: &Path, wire: Wire) -> Result<Build> {
    let spoken = match wire {
        Wire::Responses => model::Wire::Responses,
        Wire::Chat => model::Wire::Chat,
        Wire::Messages => model::Wire::Messages,
        // What any body costs that is one piece of memory.
        Wire::Copy => {
            return Ok(Box::new(|input| {
                let mut body = String::with_capacity(input.items().iter().map(|item| item.raw().len() + 1).sum());
                for item in input.items() {
                    body.push_str(item.raw());
                    body.push(',');
                }
                std::hint::black_box(body);
            }));
        }
    };
    let provider = Provider::new("bench", "http://127.0.0.1:9", spoken);
    let catalog = Catalog::new([provider], Http::new(Proxies::default()), BTreeMap::new(), AbsPath::new(work)?);
    let model = catalog.open("bench/model")?;
    let head = model.head(&[]);
    let thread = ThreadId::new();
    Ok(Box::new(move |input| {
        let request = ModelRequest {
            tree: TreeId::from(thread),
            agent: Address { path: AgentPath::root(), thread },
            role: "default".to_owned(),
            head: Arc::clone(&head),
            input: input.clone(),
            max_output: None,
            effort: None,
        };
        drop(std::hint::black_box(model.stream(request)));
    }))
}
