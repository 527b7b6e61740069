//! Durations as people write them.

use std::time::Duration;

/// Reads `90`, `1.5s`, `250ms`, `1h30m`. A number alone is in seconds, as for timeout(1) and sleep(1).
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
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
        total += Duration::try_from_secs_f64(number * seconds).map_err(|_| problem())?;
        rest = after;
    }
    if text.is_empty() { Err(problem()) } else { Ok(total) }
}

/// Writes a duration in few characters: `3d 4h`, `12m 5s`, `4.2s`, `830ms`.
pub(crate) fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..=9 => format!("{:.1}s", duration.as_secs_f64()),
        10..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let millis = |text| parse(text).map(|duration| duration.as_millis());
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
        for text in ["", "s", "5x", "-1", "1h30", "inf", "NaN", "1..5s", "999999999999999999999999d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_written_in_few_characters() {
        let written = |millis| short(Duration::from_millis(millis));
        assert_eq!(
            [830, 4210, 42_000, 725_000, 15_000_000, 280_000_000].map(written),
            ["830ms", "4.2s", "42s", "12m 5s", "4h 10m", "3d 5h"]
        );
    }
}
