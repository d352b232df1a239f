//! What a model reads about a process.

use std::fmt::Write as _;
use std::time::Duration;

use exec::Phase;
use protocol::EffectId;
use tool_api::ToolOutput;

use crate::session::{Look, Session};
use crate::truncate::{tokens, truncate};

/// Hex digits that tell one piece of output from another.
const CHUNK_DIGITS: usize = 6;

/// Says how far a process is, and what it has said, in at most `max` bytes.
pub(crate) fn report(effect: EffectId, waited: Duration, session: &Session, look: &Look, max: usize) -> ToolOutput {
    let id = session.id;
    let chunk = effect.short();
    let chunk = chunk.get(..CHUNK_DIGITS).unwrap_or(&chunk);
    let mut text = format!("Chunk ID: {chunk}\nWall time: {:.4} seconds\n", waited.as_secs_f64());
    let exited = match look.progress.exit {
        Some(code) => format!("Process exited with code {code}\n"),
        None => "Process exited, how is not known\n".to_owned(),
    };
    match look.progress.phase {
        Phase::Running => {
            // Writing to a string does not fail.
            let _ = writeln!(text, "Process running with session ID {id}");
            if look.cancelled {
                text.push_str("The wait was interrupted; the process runs on\n");
            }
        }
        Phase::Lingering => {
            text += &exited;
            let _ = writeln!(text, "Processes it started run on as session ID {id}");
        }
        Phase::Gone => text += &exited,
    }
    let _ = write!(text, "Original token count: {}\nOutput:\n", tokens(look.chunk.total()));
    text += &truncate(&look.chunk, max);
    ToolOutput::ok(text)
}
