//! `apply_patch`: edits files.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use stdx::AbsPath;
use tool_api::{Grammar, Invocation, Tool, ToolError, ToolInput, ToolOutput, ToolSpec, parse, schema};

use crate::files::Disk;
use crate::table::Table;

pub(crate) const NAME: &str = "apply_patch";

const DESCRIPTION: &str = "Edits text files. The patch starts with the line `*** Begin Patch`, ends with `*** End Patch`, and has a section a file: `*** Add File: PATH` with `+` lines, `*** Delete File: PATH`, or `*** Update File: PATH`, perhaps `*** Move to: PATH`, then chunks. A chunk is `@@` or `@@ ` and a line above the change, then about three lines of context (with a blank in front) around the lines to take out (`-`) and to put in (`+`). There are no line numbers. Paths are relative to the working folder.";

/// The language, for providers that hold a model to a grammar. It says what a patch looks like, not what fits.
const GRAMMAR: &str = r#"start: "*** Begin Patch" LF section+ "*** End Patch" LF?

section: add | delete | update

add: "*** Add File: " TEXT LF added*
added: "+" TEXT? LF

delete: "*** Delete File: " TEXT LF

update: "*** Update File: " TEXT LF move? chunks?
move: "*** Move to: " TEXT LF
chunks: (anchor | line)+ last?
anchor: ("@@" | "@@ " TEXT) LF
line: ("+" | "-" | " ") TEXT? LF
last: "*** End of File" LF

TEXT: /[^\n]+/
%import common.LF
"#;

/// Arguments of `apply_patch` where the wire has no free text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The whole patch.
    #[serde(alias = "patch")]
    input: String,
}

/// The tool.
pub(crate) struct ApplyPatch {
    pub(crate) table: Arc<Table>,
}

impl Tool for ApplyPatch {
    fn name(&self) -> &str {
        NAME
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            input: ToolInput::Freeform {
                grammar: Grammar { syntax: "lark", definition: GRAMMAR },
                fallback: schema::<Input>(),
            },
        }
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        async move {
            // No patch starts with a brace, so that what the wire calls the call does not matter.
            let text = if invocation.call.arguments.trim_start().starts_with('{') {
                parse::<Input>(&invocation.call)?.input
            } else {
                invocation.call.arguments
            };
            apply(&self.table, invocation.cwd, text).await
        }
        .boxed()
    }
}

/// Carries a patch out. An interrupt does not tear it: files are few and local.
pub(crate) async fn apply(table: &Table, cwd: AbsPath, text: String) -> Result<ToolOutput, ToolError> {
    let _turn = table.patching.lock().await;
    let work = move || {
        let patch = patch::parse(&text).map_err(|error| ToolError::respond(format!("not a valid patch: {error}")))?;
        let mut disk = Disk::new(cwd);
        let refused = |how: &str, error| ToolError::respond(format!("{how}: {error}"));
        // Most patches that do not fit are found out here, with no file touched.
        patch::dry_run(&patch, &mut disk).map_err(|error| refused("the patch was not applied", error))?;
        patch::apply(&patch, &mut disk).map_err(|error| refused("the patch was not applied to its end", error))
    };
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| ToolError::Fatal(format!("apply_patch broke off: {error}")))??;
    Ok(ToolOutput::ok(format!("Success. Updated the following files:\n{done}")))
}
