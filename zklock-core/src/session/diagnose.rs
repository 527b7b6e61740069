//! Why no session could be opened. The word "timeout" alone helps nobody.

use crate::base::error::{Error, ErrorKind};
use crate::base::sockets;
use crate::connect::credentials::Credentials;
use crate::connect::options::ClientOptions;
use crate::connect::path::{Hosts, written};
use crate::session::slot::Slot;
use crate::zookeeper::probe;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// How long servers have to accept a connection.
const A_MOMENT: Duration = Duration::from_millis(300);
/// How long they have to accept it and complete a handshake, or to let us see the KDC first: up to four round trips,
/// and the work in between.
const A_HANDSHAKE: Duration = Duration::from_millis(1000);

/// What resolvers say (those of glibc and musl) if a name server did not answer, or had a problem. The number of the error is
/// not to be had.
const MAY_PASS: [&str; 2] = ["Temporary failure in name resolution", "Try again"];

const A_MONTH: Duration = Duration::from_secs(30 * 86_400);

/// Ends once a host name can be resolved, or it is certain that none can be. `problems` then has the reasons.
async fn resolve(hosts: &Hosts, problems: &mut Vec<String>) {
    loop {
        problems.clear();
        for (host, port) in &hosts.servers {
            match lookup_host((host.as_str(), *port)).await {
                Ok(_) => return problems.clear(),
                Err(error) => problems.push(format!("{host}: {error}")),
            }
        }
        if !problems.iter().any(|problem| MAY_PASS.iter().any(|words| problem.ends_with(words))) {
            return;
        }
        sleep(A_MOMENT).await;
    }
}

/// Ends when there is no hope left: at once if no host name exists, otherwise after `patience`.
pub(crate) async fn hosts(options: &ClientOptions, slot: &Slot) -> Error {
    let (hosts, patience) = (&options.hosts, options.connect_timeout);
    // A patience beyond the clock's range never ends; a month is as good.
    let deadline = Instant::now() + patience.min(A_MONTH);
    let mut problems = Vec::new();
    let is_late = timeout_at(deadline, resolve(hosts, &mut problems)).await.is_err();
    if is_late || !problems.is_empty() {
        let problems = problems.join("; ");
        let message = if is_late {
            format!(
                "no name of a host could be resolved within {patience:?}: check the resolver ({problems})"
            )
        } else {
            format!("none of the hosts is known ({problems}): check the names")
        };
        return Error::new(ErrorKind::Unreachable, message);
    }
    // The checks take their time from the end of the wait, and do not prolong it.
    let time_to_look = time_to_look(options);
    let look_at = deadline.checked_sub(time_to_look).unwrap_or(deadline);
    // Most clients have their session by then, and no server is asked.
    sleep_until(look_at.min(Instant::now() + A_MOMENT)).await;
    if let Ok(Some(error)) = timeout_at(look_at, all_for_others(options)).await {
        return error;
    }
    sleep_until(look_at).await;
    let mut looks = JoinSet::new();
    for (host, port) in hosts.servers.clone() {
        let options = options.clone();
        looks.spawn(async move {
            let finding = look(&options, &host, port, deadline).await;
            (host, port, finding)
        });
    }
    let findings = looks.join_all().await;
    // The session may still come.
    sleep_until(deadline).await;
    let findings = findings.into_iter().map(|(host, port, finding)| {
        let finding = slot.not_zookeeper(&written(&host, port)).unwrap_or(finding);
        format!("{host}:{port} {finding}")
    });
    let findings = findings.collect::<Vec<_>>().join("; ");
    let message = format!("no session could be opened within {patience:?}: {findings}");
    Error::new(ErrorKind::Unreachable, message)
}

/// Returns the error if all the ports are for clients with TLS, or all for clients without, and we are the other
/// kind. Waiting does not help then.
async fn all_for_others(options: &ClientOptions) -> Option<Error> {
    let is_tls = speaks_tls(options);
    let mut probes = JoinSet::new();
    for (host, port) in options.hosts.servers.clone() {
        probes.spawn(async move { probe::is_for_others(is_tls, &host, port).await });
    }
    if !probes.join_all().await.into_iter().all(|is_for_others| is_for_others) {
        return None;
    }
    let servers: Vec<_> = options.hosts.servers.iter().map(|(host, port)| written(host, *port)).collect();
    let servers = servers.join(", ");
    let message = match is_tls {
        true => format!(
            "no session can be opened: the server at {servers} does not speak TLS: give the port that does \
             (secureClientPort in zoo.cfg), or connect without TLS"
        ),
        false => format!(
            "no session can be opened: the server at {servers} only speaks TLS: connect with TLS, or give \
             the port without it (clientPort in zoo.cfg)"
        ),
    };
    Some(Error::new(ErrorKind::Unreachable, message))
}

fn speaks_tls(options: &ClientOptions) -> bool {
    #[cfg(feature = "tls")]
    return options.tls.is_some();
    #[cfg(not(feature = "tls"))]
    {
        let _ = options;
        false
    }
}

fn time_to_look(options: &ClientOptions) -> Duration {
    let is_more = speaks_tls(options) || options.credentials.iter().any(Credentials::is_kerberos);
    if is_more { A_HANDSHAKE } else { A_MOMENT }
}

async fn look(options: &ClientOptions, host: &str, port: u16, deadline: Instant) -> String {
    match timeout_at(deadline, sockets::connect((host, port))).await {
        Ok(Ok(stream)) => accepted(options, host, stream, deadline).await,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "does not answer".to_owned(),
    }
}

#[cfg_attr(not(feature = "tls"), allow(unused_variables, reason = "only TLS needs them, and some Kerberos"))]
async fn accepted(options: &ClientOptions, host: &str, stream: TcpStream, deadline: Instant) -> String {
    #[cfg(feature = "kerberos")]
    {
        let left = deadline.saturating_duration_since(Instant::now());
        if let Some(why) = crate::connect::credentials::no_ticket(&options.credentials, host, left).await {
            return format!("cannot be logged in to: {why}");
        }
    }
    #[cfg(feature = "tls")]
    if let Some(tls) = &options.tls {
        return crate::zookeeper::handshake::look(tls, host, stream, deadline).await;
    }
    let mut finding =
        "accepts connections but opens no session: is it ZooKeeper, does the port expect TLS, and has the \
                       ensemble a leader?"
            .to_owned();
    if options.credentials.iter().any(Credentials::is_kerberos) {
        finding += " (servers that only accept logins by password end a login by Kerberos like this, and \
                    servers before 3.6 end every refused login like this)";
    } else if options.credentials.iter().any(Credentials::is_sasl) {
        finding += " (servers before 3.6 hang up like that on a wrong user or password for SASL)";
    }
    finding
}
