//! Which agent a word of the command line means.

use protocol::AgentPath;

use crate::exit::Failure;

/// The agent that `text` means: `/root/a`, `root/a` and `a` alike. No agent below the root can be called `root`.
pub(crate) fn agent(text: &str) -> Result<AgentPath, Failure> {
    let text = text.trim();
    let root = AgentPath::root();
    let path = match text.strip_prefix("root") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => root.resolve(&format!("/{text}")),
        _ => root.resolve(text),
    };
    path.map_err(|error| Failure::usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slash_may_be_left_out() {
        for (text, path) in [
            ("/root", "/root"),
            ("root", "/root"),
            (" root/a ", "/root/a"),
            ("a/b", "/root/a/b"),
            ("rooted", "/root/rooted"),
        ] {
            assert_eq!(agent(text).unwrap().as_str(), path);
        }
        for text in ["", "root/", "/elsewhere", "a/root"] {
            assert_eq!(agent(text).unwrap_err().code(), crate::exit::USAGE, "{text}");
        }
    }
}
