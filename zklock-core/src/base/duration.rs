//! Durations as people write them.

use std::time::Duration;

/// Reads `90`, `1.5s`, `250ms`, `1h30m`, `1 day`, and what is printed for people or by `Debug`: `3d 4h`, `12µs`. A number alone
/// is in seconds, as for timeout(1) and sleep(1).
///
/// # Errors
///
/// If it is nothing of the kind: the text says how to write one.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let problem = || format!("{text:?} is not a duration: write it as 90, 1.5s, 250ms, 1h30m or 1 day");
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| problem());
    }
    let (mut total, mut rest) = (Duration::ZERO, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(problem)?;
        let (number, unit_on) = rest.split_at(digits);
        let unit_on = unit_on.trim_start();
        let end = unit_on.find(|c: char| !c.is_alphabetic()).unwrap_or(unit_on.len());
        let (unit, after) = unit_on.split_at(end);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => return Err(problem()),
        };
        let number: f64 = number.parse().map_err(|_| problem())?;
        let part = Duration::try_from_secs_f64(number * seconds).ok();
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(problem)?;
        rest = after.trim_start();
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
            ("1 day", 86_400_000),
            (" 2 days 1 hour\n", 176_400_000),
            ("90 seconds", 90_000),
            ("1500µs", 1),
        ] {
            assert_eq!(millis(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "s",
            "5x",
            "-1",
            "1h30",
            "1 h 30",
            "1 s s",
            "1 5s",
            " ",
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
