//! A span of time on the command line: a number and a unit.

use std::time::Duration;

/// The longest span that is taken: beyond a year a digit too many was typed.
const LONGEST: Duration = Duration::from_hours(24 * 366);

/// Reads `90s`, `10m`, `2h`, `1d` or `500ms`.
///
/// # Errors
/// A sentence that says how it is written.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let millis: u64 = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => 0,
    };
    let span = number.parse::<u64>().ok().and_then(|number| number.checked_mul(millis)).map(Duration::from_millis);
    match span {
        Some(span) if !span.is_zero() && span <= LONGEST => Ok(span),
        _ => Err("a time is a number and a unit, such as 90s, 10m or 2h, and not over a year".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, millis: Option<u64>) {
        assert_eq!(span(text).ok(), millis.map(Duration::from_millis), "{text}");
    }

    #[test]
    fn forms() {
        check("500ms", Some(500));
        check("90s", Some(90_000));
        check(" 10m ", Some(600_000));
        check("10 min", Some(600_000));
        check("2h", Some(7_200_000));
        check("1d", Some(86_400_000));
        for wrong in ["", "10", "m", "0s", "-1s", "1.5h", "10 years", "99999999999d", "400d"] {
            check(wrong, None);
        }
    }
}
