//! Words on the command line that mean nothing: what was probably meant, as one line to type.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use stdx::one_line;

use crate::cli::Cli;

/// Characters of a command line that a hint repeats.
const MAX_SHOWN: usize = 200;

/// What to type instead of `args` (the first is the program), when that is beyond what `error` itself suggests.
pub(crate) fn hint(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let words: Vec<String> = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let place = |word: &str| words.iter().position(|have| have == word);
    match error.kind() {
        // A task, or its first word, stands where a command should.
        ErrorKind::InvalidSubcommand => {
            if error.get(ContextKind::SuggestedSubcommand).is_some() {
                return None;
            }
            Some(task(&words, place(text(ContextKind::InvalidSubcommand)?)?))
        }
        ErrorKind::UnknownArgument => {
            let wrong = text(ContextKind::InvalidArg)?;
            let at = place(wrong)?;
            let command = command(&words[..at]);
            match (wrong.starts_with('-'), command) {
                // `-p` and its like, which other programs have.
                (true, None | Some("run")) if error.get(ContextKind::SuggestedArg).is_none() => {
                    Some(task(&words, at + 1))
                }
                (false, Some(command)) => unquoted(&words, at, command),
                _ => None,
            }
        }
        _ => None,
    }
}

/// How a task is given that begins with the word at `from`.
fn task(words: &[String], from: usize) -> String {
    let told: Vec<&str> =
        words.iter().skip(from).map(String::as_str).take_while(|word| !word.starts_with('-')).collect();
    let told = if told.is_empty() { "\"…\"".to_owned() } else { quoted(&told.join(" ")) };
    format!("to give a task: agent run {told}")
}

/// Several words where one text belongs. The text begins just before the word at `at`, which is one too many.
fn unquoted(words: &[String], at: usize, command: &str) -> Option<String> {
    let what = match command {
        "run" | "resume" => "task",
        "send" => "message",
        _ => return None,
    };
    let from = at.checked_sub(1)?;
    let end = words.iter().skip(from).position(|word| word.starts_with('-')).map_or(words.len(), |n| from + n);
    let shown = |word: &String| if plain(word) { word.clone() } else { quoted(word) };
    let (before, rest) = words.split_at(from);
    let (told, after) = rest.split_at(end - from);
    let told = quoted(&told.join(" "));
    let line: Vec<String> = before.iter().map(shown).chain([told]).chain(after.iter().map(shown)).collect();
    Some(format!("put the {what} in quotes: agent {}", line.join(" ")))
}

/// The command among these words.
fn command(words: &[String]) -> Option<&str> {
    let known = Cli::command();
    let names: Vec<&str> = known.get_subcommands().map(clap::Command::get_name).collect();
    words.iter().map(String::as_str).find(|word| names.contains(word))
}

fn plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "/_-=.,:+@%".contains(c))
}

/// The text as one word of a shell.
fn quoted(text: &str) -> String {
    let text = one_line(text, MAX_SHOWN);
    if text.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", text.replace('\'', "'\\''"))
    } else {
        format!("\"{text}\"")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &[&str], expect: Expect) {
        let args: Vec<OsString> = ["agent"].iter().chain(line).map(OsString::from).collect();
        let error = Cli::try_parse_from(&args).unwrap_err();
        expect.assert_eq(&hint(&error, &args).unwrap_or_default());
    }

    #[test]
    fn a_task_without_its_command() {
        check(&["fix the tests"], expect![[r#"to give a task: agent run "fix the tests""#]]);
        check(&["fix", "the", "tests", "--json"], expect![[r#"to give a task: agent run "fix the tests""#]]);
        check(&["--model", "rehearsal", "say $HOME"], expect![[r"to give a task: agent run 'say $HOME'"]]);
        check(&["-p", "hi"], expect![[r#"to give a task: agent run "hi""#]]);
        check(&["--print"], expect![[r#"to give a task: agent run "…""#]]);
        check(&["run", "-p", "hi"], expect![[r#"to give a task: agent run "hi""#]]);
    }

    #[test]
    fn a_task_without_quotes() {
        check(&["run", "fix", "the", "tests"], expect![[r#"put the task in quotes: agent run "fix the tests""#]]);
        check(
            &["run", "-C", "a b", "fix", "it", "--json"],
            expect![[r#"put the task in quotes: agent run -C "a b" "fix it" --json"#]],
        );
        check(
            &["send", "/root/a", "don't", "stop!"],
            expect![[r"put the message in quotes: agent send /root/a 'don'\''t stop!'"]],
        );
        check(&["resume", "go", "on"], expect![[r#"put the task in quotes: agent resume "go on""#]]);
    }

    #[test]
    fn what_says_enough_itself() {
        check(&["run", "--modle", "x", "y"], expect![""]);
        check(&["log", "/root", "/root/a"], expect![""]);
        check(&["lst"], expect![""]);
        check(&["tree", "-p"], expect![""]);
        check(&["run", "--max-running", "many", "x"], expect![""]);
    }
}
