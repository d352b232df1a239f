//! Where agents get their hands.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use exec::{Environment, Fate, Shell};
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use protocol::{ProcessRecord, ThreadId};
use tokio_util::task::TaskTracker;
use tool_api::{AgentFacts, Hands, Running, Swept, SweptHow, Tool, Workshop};

use crate::command::ExecCommand;
use crate::edit::{self, ApplyPatch};
use crate::stdin::WriteStdin;
use crate::table::Table;

/// Characters of a command line that are shown to people.
const SHOWN: usize = 200;

/// Makes the hands of all agents of one program.
///
/// An agent that is put to sleep and wakes again finds its processes: they belong to the workbench, not to the hands.
/// Only [`Hands::end_processes`] and the end of the workbench end them.
#[derive(Debug)]
pub struct Workbench {
    bench: Arc<Bench>,
    tables: Mutex<HashMap<ThreadId, Arc<Table>>>,
}

/// What all agents share.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) environment: Environment,
    pub(crate) shell: Shell,
    /// The tasks that read and reap; each ends with its process.
    pub(crate) tasks: TaskTracker,
}

struct AgentHands {
    table: Arc<Table>,
    tools: Vec<Arc<dyn Tool>>,
}

impl Workbench {
    /// A workbench whose processes get this environment.
    ///
    /// # Errors
    /// When there is no shell.
    pub fn new(environment: Environment) -> Result<Self, exec::Error> {
        let shell = Shell::find(&environment)?;
        let bench = Arc::new(Bench { environment, shell, tasks: TaskTracker::new() });
        Ok(Self { bench, tables: Mutex::default() })
    }

    fn table(&self, thread: ThreadId) -> Arc<Table> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|_, table| Arc::strong_count(table) > 1 || table.needed());
        Arc::clone(tables.entry(thread).or_insert_with(|| Arc::new(Table::new(Arc::clone(&self.bench)))))
    }
}

impl Workshop for Workbench {
    fn hands(&self, agent: &AgentFacts) -> Arc<dyn Hands> {
        let table = self.table(agent.agent.thread);
        let may = |name: &str| agent.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|known| known == name));
        let all: [Arc<dyn Tool>; 3] = [
            Arc::new(ExecCommand { table: Arc::clone(&table), patches: may(edit::NAME) }),
            Arc::new(WriteStdin { table: Arc::clone(&table) }),
            Arc::new(ApplyPatch { table: Arc::clone(&table) }),
        ];
        let tools = all.into_iter().filter(|tool| may(tool.name())).collect();
        Arc::new(AgentHands { table, tools })
    }

    fn end_all(&self) -> BoxFuture<'_, ()> {
        async move {
            let tables: Vec<Arc<Table>> = {
                let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
                tables.values().filter(|table| table.needed()).map(Arc::clone).collect()
            };
            // One look at all processes of the machine for all agents: a look costs milliseconds.
            let marks = join_all(tables.iter().map(|table| table.end_groups())).await;
            let survivors = exec::end_marked(marks.into_iter().flatten()).await;
            join_all(tables.iter().map(|table| table.bury(&survivors))).await;
        }
        .boxed()
    }

    fn sweep(&self, ledger: Vec<ProcessRecord>) -> BoxFuture<'_, Vec<Swept>> {
        async move {
            let how = |fate| match fate {
                Fate::Ended => SweptHow::Ended,
                Fate::Gone => SweptHow::Gone,
                Fate::Survives => SweptHow::Survives,
            };
            let left = exec::sweep(&ledger).await;
            left.into_iter()
                .map(|left| Swept {
                    token: left.token,
                    command: stdx::one_line(&left.command, SHOWN),
                    how: how(left.fate),
                })
                .collect()
        }
        .boxed()
    }
}

impl Hands for AgentHands {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    fn running(&self) -> Vec<Running> {
        self.table.running()
    }

    fn end_processes(&self) -> BoxFuture<'_, ()> {
        self.table.end().boxed()
    }
}
