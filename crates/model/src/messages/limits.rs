//! What this wire wants to be told about a model: how much it may say, and how it thinks.

/// Most output tokens of a model that we do not know. The wire demands a number; this one is accepted by every server
/// of the last years, and a reply that needs more is rare and says so.
pub(super) const MAX_TOKENS: u64 = 8192;

/// Most output tokens of a Claude since 3.7. The least that any of them allows, and it leaves room for reasoning,
/// which counts as output.
pub(super) const MAX_TOKENS_CLAUDE: u64 = 32_000;

/// Most output tokens of the first Claude 3 models.
const MAX_TOKENS_CLAUDE_3: u64 = 4096;

/// The least that a server accepts as a budget of reasoning, in tokens.
const MIN_BUDGET: u64 = 1024;

/// The most output tokens to ask for when nobody has said a number.
pub(super) fn max_tokens(model: &str) -> u64 {
    match version(model) {
        Some(version) if version >= (3, 7) => MAX_TOKENS_CLAUDE,
        Some((3, 0)) => MAX_TOKENS_CLAUDE_3,
        // A name without a number is a newest model's.
        None if is_claude(model) => MAX_TOKENS_CLAUDE,
        _ => MAX_TOKENS,
    }
}

/// The fields that ask for an effort, beginning with a comma.
pub(super) fn effort(model: &str, effort: &str, most: u64) -> String {
    let asked = crate::json::quote(match effort {
        "minimal" => "low",
        other => other,
    });
    match version(model) {
        // These models think by a budget of tokens; later ones refuse one.
        Some(version) if ((3, 7)..(4, 6)).contains(&version) => {
            let share = match effort {
                "minimal" | "low" => 8,
                "medium" => 4,
                _ => 2,
            };
            let budget = (most / share).max(MIN_BUDGET);
            if budget < most {
                format!(",\"thinking\":{{\"type\":\"enabled\",\"budget_tokens\":{budget}}}")
            } else {
                String::new()
            }
        }
        Some(version) if version < (3, 7) => String::new(),
        _ if is_claude(model) => {
            format!(",\"thinking\":{{\"type\":\"adaptive\"}},\"output_config\":{{\"effort\":{asked}}}")
        }
        // Somebody else's model behind this wire: those that know effort at all know it by this name.
        _ => format!(",\"output_config\":{{\"effort\":{asked}}}"),
    }
}

fn is_claude(model: &str) -> bool {
    model.contains("claude")
}

/// The version in a name such as `claude-opus-4-6` or `claude-3-5-haiku-20241022`; none when it has no number.
fn version(model: &str) -> Option<(u64, u64)> {
    let name = model.split_once("claude").map(|(_, rest)| rest)?;
    // Eight digits are a date.
    let numbers: Vec<u64> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() < 8)
        .filter_map(|word| word.parse().ok())
        .collect();
    let (major, minor) = (*numbers.first()?, numbers.get(1).copied().unwrap_or(0));
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for (name, expect) in [
            ("claude-sonnet-5", Some((5, 0))),
            ("claude-opus-4-6", Some((4, 6))),
            ("claude-haiku-4-5-20251001", Some((4, 5))),
            ("claude-opus-4-20250514", Some((4, 0))),
            ("claude-3-7-sonnet-20250219", Some((3, 7))),
            ("claude-3-haiku-20240307", Some((3, 0))),
            ("anthropic/claude-sonnet-4.5", Some((4, 5))),
            ("claude-latest", None),
            ("qwen3-coder", None),
        ] {
            assert_eq!(version(name), expect, "{name}");
        }
    }

    #[test]
    fn most_output() {
        for (name, expect) in [
            ("claude-sonnet-5", 32_000),
            ("claude-latest", 32_000),
            ("claude-3-5-sonnet-20241022", 8192),
            ("claude-3-opus-20240229", 4096),
            ("qwen3-coder", 8192),
        ] {
            assert_eq!(max_tokens(name), expect, "{name}");
        }
    }

    #[test]
    fn efforts() {
        let check = |model: &str, asked: &str, most, expect: &str| assert_eq!(effort(model, asked, most), expect);
        let adaptive = r#","thinking":{"type":"adaptive"},"output_config":{"effort":"low"}"#;
        check("claude-sonnet-5", "minimal", 32_000, adaptive);
        check("claude-opus-4-6", "low", 32_000, adaptive);
        let budget = r#","thinking":{"type":"enabled","budget_tokens":16000}"#;
        check("claude-haiku-4-5-20251001", "high", 32_000, budget);
        // The budget has to leave something to say.
        check("claude-haiku-4-5-20251001", "low", 1024, "");
        check("claude-3-5-haiku-20241022", "high", 8192, "");
        check("deepseek-chat", "high", 8192, r#","output_config":{"effort":"high"}"#);
    }
}
