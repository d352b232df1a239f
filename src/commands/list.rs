//! `agent list`.

use stdx::one_line;

use crate::cli::List;
use crate::exit::{self, Failure};
use crate::output;
use crate::wire::Setting;

/// Characters of a title in the listing.
const TITLE: usize = 60;

pub(super) fn list(setting: &Setting, args: &List) -> Result<u8, Failure> {
    let all = setting.heads()?;
    // A tree that is archived in part is in both lists, until one of both ways is finished.
    let (heads, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|head| if args.archived { head.archived || head.partly } else { !head.archived });
    if setting.common.json {
        let json = serde_json::to_string(&heads);
        output::answer(&json.map_err(|error| Failure::internal(format!("the list has no JSON form: {error}")))?);
        return Ok(exit::DONE);
    }
    let archived = match others.len() {
        _ if args.archived => None,
        0 => None,
        1 => Some("1 more is archived: agent list --archived".to_owned()),
        many => Some(format!("{many} more are archived: agent list --archived")),
    };
    if heads.is_empty() && args.archived {
        output::note("no tree is archived; `agent archive ID` archives one");
    } else if heads.is_empty() && archived.is_none() {
        output::note("there is no tree yet; `agent run \"…\"` makes one");
    }
    let mut text = String::new();
    for head in &heads {
        let when = head.updated_at.to_string();
        let when = when.get(..16).unwrap_or(&when).replace('T', " ");
        let agents = if head.open == 1 { "1 agent".to_owned() } else { format!("{} agents", head.open) };
        let unread = if head.unread > 0 { format!(", {} unread", head.unread) } else { String::new() };
        let driven = if head.driven { ", at work" } else { "" };
        let closed = if head.open == 0 { "closed".to_owned() } else { format!("{agents}{driven}{unread}") };
        let folder = setting.env.tilde(&head.cwd);
        let partly = if head.partly { "  (archived in part)" } else { "" };
        text += &format!("{}  {when}  {closed:20}  {}  {folder}{partly}\n", head.tree, one_line(&head.title, TITLE));
    }
    output::answer(&text);
    if let Some(archived) = archived {
        output::note(&archived);
    }
    Ok(exit::DONE)
}
