//! The session timeouts that each server grants. A lease takes it for granted that no server grants less than half of what
//! another one granted: see "What the promises rest on" in docs/guarantees.md.

use std::time::Duration;

use zklock::face::times;
use zklock::{Client, ClientOptions, Error};

use super::finding::Finding;
use crate::duration;

/// What is asked for to learn the limits: less than any server grants, and more.
const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(3600);

/// The session timeouts that one server grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// To a client like this one.
    pub(super) granted: Duration,
    least: Duration,
    most: Duration,
}

impl Limits {
    /// Asks the server at these hosts, with a session for each limit. It has granted this much to a session as the options
    /// say.
    pub(super) async fn of(options: &ClientOptions, granted: Duration) -> Result<Self, Error> {
        let least = grants(options, LEAST).await?.unwrap_or(granted);
        let most = grants(options, MOST).await?.unwrap_or(granted);
        Ok(Self { granted, least, most })
    }

    /// Whether this server may grant less than half of what the other does, to some client.
    fn may_halve(self, other: Self) -> bool {
        let is_half = |own: Duration, others: Duration| own < times::LEASE.of(others);
        is_half(self.least, other.least) || is_half(self.most, other.most)
    }
}

/// Returns what is granted to a session that asks for this; `None` if the session has ended meanwhile.
async fn grants(options: &ClientOptions, asked: Duration) -> Result<Option<Duration>, Error> {
    let client = Client::connect(options.clone().session_timeout(asked)).await?;
    let granted = client.session_timeout();
    client.close().await?;
    Ok(granted)
}

/// Compares the servers. The first of the pair that differs most comes first in the finding.
pub(super) fn compare(servers: &[(&str, Limits)]) -> Option<Finding> {
    let pairs = || servers.iter().flat_map(|one| servers.iter().map(move |other| (one, other)));
    let advice = "a server that takes a session over from another could end it while its locks are held: give all servers the \
                  same tickTime, minSessionTimeout and maxSessionTimeout in zoo.cfg, and restart them";
    let short = duration::short;
    let halved = |((_, one), (_, other)): &(&(&str, Limits), &(&str, Limits))| {
        one.granted < times::LEASE.of(other.granted)
    };
    if let Some(((one, few), (other, many))) = pairs().find(halved) {
        let (few, many) = (short(few.granted), short(many.granted));
        let text = format!("{one} grants {few}, less than half of the {many} that {other} grants");
        return Some(Finding::bad("session timeouts", text, advice));
    }
    if let Some(((one, few), (other, many))) = pairs().find(|((_, one), (_, other))| one.may_halve(*other)) {
        let limits = |limits: &Limits| format!("{} to {}", short(limits.least), short(limits.most));
        let text = format!("{one} grants {}, {other} {}", limits(few), limits(many));
        return Some(Finding::warning("session timeouts", text, advice));
    }
    let (_, first) = servers.first()?;
    let text = format!("all servers grant {} to {}, or nearly so", short(first.least), short(first.most));
    Some(Finding::good("session timeouts", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(granted: u64, least: u64, most: u64) -> Limits {
        let [granted, least, most] = [granted, least, most].map(Duration::from_secs);
        Limits { granted, least, most }
    }

    fn compared(servers: &[(&str, Limits)]) -> String {
        serde_json::to_string(&compare(servers).unwrap()).unwrap()
    }

    #[test]
    fn a_server_that_grants_less_than_half_is_named_first_and_one_that_could_is_too() {
        for (one, other, verdict, text) in [
            (limits(10, 4, 40), limits(5, 2, 20), "good", "all servers grant 4.0s to 40s, or nearly so"),
            (
                limits(10, 4, 40),
                limits(4, 1, 4),
                "bad",
                "b:1 grants 4.0s, less than half of the 10s that a:1 grants",
            ),
            (limits(10, 4, 40), limits(10, 4, 15), "warning", "b:1 grants 4.0s to 15s, a:1 4.0s to 40s"),
            (limits(10, 4, 40), limits(10, 10, 40), "warning", "a:1 grants 4.0s to 40s, b:1 10s to 40s"),
        ] {
            let (one, other) = (("a:1", one), ("b:1", other));
            for found in [compared(&[one, other]), compared(&[other, one])] {
                let expected = format!("\"verdict\":\"{verdict}\",\"finding\":\"");
                assert!(found.contains(&expected), "{found}");
                assert!(found.contains(text) || verdict == "good", "{found}");
            }
        }
        assert!(compare(&[]).is_none());
    }
}
