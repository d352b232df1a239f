//! `agent list`.

use orchestrator::list as trees;
use stdx::one_line;

use crate::exit::{self, Failure};
use crate::output;
use crate::wire::Setting;

/// Characters of a title in the listing.
const TITLE: usize = 60;

pub(super) fn list(setting: &Setting) -> Result<u8, Failure> {
    let (heads, problems) = trees(&setting.store, setting.mirror())?;
    for problem in problems {
        output::note(&format!("warning: {problem}"));
    }
    if setting.common.json {
        let json = serde_json::to_string(&heads);
        output::answer(&json.map_err(|error| Failure::internal(format!("the list has no JSON form: {error}")))?);
        return Ok(exit::DONE);
    }
    if heads.is_empty() {
        output::note("there is no tree yet; `agent run \"…\"` makes one");
        return Ok(exit::DONE);
    }
    let mut text = String::new();
    for head in &heads {
        let when = head.updated_at.to_string();
        let when = when.get(..16).unwrap_or(&when).replace('T', " ");
        let agents = if head.open == 1 { "1 agent".to_owned() } else { format!("{} agents", head.open) };
        let unread = if head.unread > 0 { format!(", {} unread", head.unread) } else { String::new() };
        let closed = if head.open == 0 { "closed".to_owned() } else { format!("{agents}{unread}") };
        let folder = setting.env.tilde(&head.cwd);
        text += &format!("{}  {when}  {closed:20}  {}  {folder}\n", head.tree, one_line(&head.title, TITLE));
    }
    output::answer(&text);
    Ok(exit::DONE)
}
