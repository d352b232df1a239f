//! Finding a patch in a command line: models like to write `apply_patch` as if it were a program.
//!
//! Only a command line that is nothing but that is taken, and only where the shell would pass the text on unchanged.
//! Everything else is left to the shell.

/// A patch found in a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The folder of a `cd` before it.
    pub(crate) folder: Option<String>,
    /// The patch.
    pub(crate) patch: String,
}

/// The patch that `command` applies, if it does nothing else: a here-document or a quoted argument, perhaps after
/// `cd FOLDER &&`.
pub(crate) fn intercept(command: &str) -> Option<Found> {
    let command = command.trim_start();
    let (folder, rest) = match command.strip_prefix("cd").and_then(blanks) {
        Some(rest) => {
            let (folder, rest) = word(rest)?;
            (Some(folder), rest.trim_start_matches([' ', '\t']).strip_prefix("&&")?.trim_start())
        }
        None => (None, command),
    };
    let rest = rest.strip_prefix("apply_patch").or_else(|| rest.strip_prefix("applypatch"))?;
    let patch = if let Some(rest) = rest.trim_start_matches([' ', '\t']).strip_prefix("<<") {
        document(rest)?
    } else {
        let (patch, rest) = quoted(blanks(rest)?)?;
        rest.trim().is_empty().then(|| patch.to_owned())?
    };
    Some(Found { folder, patch })
}

/// What follows at least one blank.
fn blanks(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches([' ', '\t']);
    (rest.len() < text.len()).then_some(rest)
}

/// The body of a here-document, from behind its `<<`. The delimiter may be bare: whoever writes a patch means it
/// literally, whatever the shell would do with a `$` in it.
fn document(text: &str) -> Option<String> {
    let text = text.trim_start_matches([' ', '\t']);
    let (delimiter, rest) = match quoted(text) {
        Some(found) => found,
        None => text.split_at(text.find(|c: char| !name(c)).unwrap_or(text.len())),
    };
    if delimiter.is_empty() || !delimiter.chars().all(name) {
        return None;
    }
    let body = rest.trim_start_matches([' ', '\t']).strip_prefix('\n')?;
    let mut patch = String::new();
    let mut lines = body.split('\n');
    for line in lines.by_ref() {
        if line == delimiter {
            return lines.all(|line| line.trim().is_empty()).then_some(patch);
        }
        patch.push_str(line);
        patch.push('\n');
    }
    None
}

fn name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A quoted text in which the shell changes nothing, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix('\'') {
        return rest.split_once('\'');
    }
    text.strip_prefix('"')?.split_once('"').filter(|(inner, _)| !inner.contains(['\\', '$', '`', '!']))
}

/// One word in which the shell changes nothing, and what follows it.
fn word(text: &str) -> Option<(String, &str)> {
    let plain = |c: char| c.is_alphanumeric() || "_./@%+=:,-".contains(c);
    let (word, rest) = match quoted(text) {
        Some(found) => found,
        None => text.split_at(text.find(|c: char| !plain(c)).unwrap_or(text.len())),
    };
    // `cd -` and `cd -P x` mean something else; a word that goes on is not understood here.
    let usable = !word.is_empty() && !word.starts_with('-') && rest.starts_with([' ', '\t', '&']);
    usable.then(|| (word.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expect: Option<(Option<&str>, &str)>) {
        let seen = intercept(command);
        let seen = seen.as_ref().map(|found| (found.folder.as_deref(), found.patch.as_str()));
        assert_eq!(seen, expect, "{command}");
    }

    #[test]
    fn here_documents() {
        check("apply_patch <<'EOF'\na\nb\nEOF", Some((None, "a\nb\n")));
        check("  apply_patch <<\"EOF\"\na\nEOF\n\n", Some((None, "a\n")));
        check("applypatch << PATCH\n$a\nPATCH\n", Some((None, "$a\n")));
        check("apply_patch<<'EOF'\nEOFX\n EOF\nEOF", Some((None, "EOFX\n EOF\n")));
        check("cd a/b && apply_patch <<'EOF'\na\nEOF", Some((Some("a/b"), "a\n")));
        check("cd 'a b' &&\napply_patch <<'EOF'\na\nEOF", Some((Some("a b"), "a\n")));
    }

    #[test]
    fn arguments() {
        check("apply_patch 'a\nb\n'", Some((None, "a\nb\n")));
        check("apply_patch \"a\"\n", Some((None, "a")));
        check("cd x && apply_patch 'a'", Some((Some("x"), "a")));
    }

    #[test]
    fn everything_else_is_the_shells() {
        for command in [
            "",
            "ls",
            "cd a",
            "cd a && ls",
            "cd && apply_patch 'a'",
            "cd - && apply_patch 'a'",
            "cd $x && apply_patch 'a'",
            "cd ~ && apply_patch 'a'",
            "cd a b && apply_patch 'a'",
            "cd a; apply_patch 'a'",
            "cda && apply_patch 'a'",
            "apply_patch",
            "apply_patch'a'",
            "apply_patch a",
            "apply_patch --help",
            "apply_patch < file",
            "apply_patch 'a' 'b'",
            "apply_patch 'a' && ls",
            "apply_patch 'a'\\''b'",
            "apply_patch \"$x\"",
            "apply_patch \"a\\\"b\"",
            "apply_patch <<'EOF'\na\n",
            "apply_patch <<'EOF' && ls\na\nEOF",
            "apply_patch <<'EOF'\na\nEOF\nls",
            "apply_patch <<-EOF\na\nEOF",
            "apply_patch <<<'a'",
            "apply_patch <<''\na\n\n",
            "apply_patches 'a'",
            "echo x | apply_patch 'a'",
            "ls && apply_patch 'a'",
        ] {
            check(command, None);
        }
    }
}
