//! Durations as people write them.

use std::time::Duration;

/// Reads `90`, `1.5s`, `250ms`, `1h30m`. A number alone is in seconds, as for timeout(1) and sleep(1).
///
/// # Errors
///
/// If it is nothing of the kind: the text says how to write one.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let problem = || format!("{text:?} is not a duration: write it as 90, 1.5s, 250ms or 1h30m");
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| problem());
    }
    let (mut total, mut rest) = (Duration::ZERO, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(problem)?;
        let (number, unit_on) = rest.split_at(digits);
        let end = unit_on.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit_on.len());
        let (unit, after) = unit_on.split_at(end);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(problem()),
        };
        let number: f64 = number.parse().map_err(|_| problem())?;
        let part = Duration::try_from_secs_f64(number * seconds).ok();
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(problem)?;
        rest = after;
    }
    if text.is_empty() { Err(problem()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let millis = |text| parse_duration(text).map(|duration| duration.as_millis());
        for (text, expected) in [
            ("0", 0),
            ("90", 90_000),
            ("0.25", 250),
            ("250ms", 250),
            ("1.5s", 1500),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(millis(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "s",
            "5x",
            "-1",
            "1h30",
            "inf",
            "NaN",
            "1..5s",
            "999999999999999999999999d",
            "200000000000000d200000000000000d",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
