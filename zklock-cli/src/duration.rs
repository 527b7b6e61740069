//! Durations as people write them.

use std::time::Duration;

pub(crate) use zklock::face::parse_duration as parse;

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
    fn durations_are_written_in_few_characters() {
        let written = |millis| short(Duration::from_millis(millis));
        assert_eq!(
            [830, 4210, 42_000, 725_000, 15_000_000, 280_000_000].map(written),
            ["830ms", "4.2s", "42s", "12m 5s", "4h 10m", "3d 5h"]
        );
        assert_eq!(parse(&written(725_000)), Ok(Duration::from_secs(725)), "what is written can be given");
    }
}
