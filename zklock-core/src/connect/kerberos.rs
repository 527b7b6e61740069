//! Kerberos tickets, from the system's own library.
//!
//! The client library would ask the KDC while it serves a connection, where nothing may block, and would not say why there
//! is no ticket. So the ticket is fetched here first, on a thread of its own. It stays in the credential cache, where the
//! client library finds it.

use crate::base::clock;
use crate::base::error::{Error, ErrorKind};
use crate::base::failure::Failure;
use libgssapi::context::{ClientCtx, CtxFlags, SecurityContext};
use libgssapi::credential::{Cred, CredUsage};
use libgssapi::error::{Error as GssError, MajorFlags};
use libgssapi::name::Name;
use libgssapi::oid::{GSS_MECH_KRB5, GSS_NT_HOSTBASED_SERVICE, OidSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// More threads than ever wait for a KDC that answers. One that does not answer keeps each thread for half a minute.
const MOST_THREADS: usize = 32;

/// The numbers of Kerberos' errors, which no release changes.
mod code {
    const BASE: u32 = 2_529_638_912;
    pub(super) const CLIENT_UNKNOWN: u32 = BASE + 6;
    pub(super) const SERVICE_UNKNOWN: u32 = BASE + 7;
    pub(super) const TICKET_EXPIRED: u32 = BASE + 32;
    pub(super) const KDC_UNREACHABLE: u32 = BASE + 156;
}

/// A login with the ticket that this process finds.
pub(crate) struct Kerberos {
    pub(crate) service: String,
    /// `None` stands for the host that is connected to.
    host: Option<String>,
    /// The process in which it was made.
    process: u32,
    threads: AtomicUsize,
}

impl Kerberos {
    pub(crate) fn new(service: &str, host: Option<&str>) -> Result<Self, Error> {
        for (what, name) in [("service", service), ("host", host.unwrap_or("host"))] {
            let is_odd =
                |letter: char| letter.is_whitespace() || letter.is_control() || "@/\\".contains(letter);
            if name.is_empty() || name.contains(is_odd) {
                let message = format!(
                    "Kerberos: {name:?} is no {what}: in the servers' principal \
                     zookeeper/zk1.example.com@EXAMPLE.COM, the service is zookeeper, and the host is \
                     zk1.example.com"
                );
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
        }
        let host = host.map(str::to_owned);
        let (service, process) = (service.to_owned(), std::process::id());
        Ok(Self { service, host, process, threads: AtomicUsize::new(0) })
    }

    /// Returns the service's host, if `connected` is the host that is connected to.
    pub(crate) fn host<'a>(&'a self, connected: &'a str) -> &'a str {
        self.host.as_deref().unwrap_or(connected)
    }

    /// `zookeeper`, or `zookeeper/zk1.example.com`.
    pub(crate) fn service_and_host(&self) -> String {
        let host = self.host.iter().map(|host| format!("/{host}"));
        std::iter::once(self.service.clone()).chain(host).collect()
    }

    /// Makes sure that the cache has a ticket for the service.
    pub(crate) async fn fetch_ticket(self: Arc<Self>, host: &str, bound: Duration) -> Result<(), Failure> {
        let target = format!("{}@{host}", self.service);
        let silent = || Failure::TryAgain(no_kdc(&target, "no answer in time"));
        // A forked child has inherited the count, but none of the threads.
        let counts = usize::from(self.process == std::process::id());
        if self.threads.fetch_add(counts, Ordering::Relaxed) >= MOST_THREADS && counts > 0 {
            self.threads.fetch_sub(counts, Ordering::Relaxed);
            return Err(silent());
        }
        let (sender, receiver) = oneshot::channel();
        let (kerberos, name) = (self.clone(), target.clone());
        let ask = move || {
            let asked = ask_for(&name);
            kerberos.threads.fetch_sub(counts, Ordering::Relaxed);
            // Perhaps nobody waits for it any more.
            let _ = sender.send(asked);
        };
        if let Err(error) = thread::Builder::new().name("zklock-kerberos".into()).spawn(ask) {
            self.threads.fetch_sub(counts, Ordering::Relaxed);
            return Err(Failure::TryAgain(format!("Kerberos: no thread can be started: {error}")));
        }
        match clock::timeout(bound, receiver).await {
            Ok(Ok(asked)) => asked,
            Ok(Err(_)) | Err(_) => Err(silent()),
        }
    }
}

impl fmt::Display for Kerberos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kerberos for the service {:?}", self.service)?;
        self.host.as_ref().map_or(Ok(()), |host| write!(f, " of {host:?}"))
    }
}

fn ask_for(target: &str) -> Result<(), Failure> {
    let flags = ask(target).map_err(|error| refusal(target, error))?;
    if flags.contains(CtxFlags::GSS_C_DELEG_FLAG) {
        return Err(Failure::Refused(
            "Kerberos: the client's ticket is forwardable, and the login would hand it to the servers, who could use it in the \
             client's name: get one that is not (kinit -F), or put enforce_ok_as_delegate = true into krb5.conf"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Fetches the ticket and begins a login with it, which is not sent to anybody. The client library's own login would do the
/// same.
fn ask(target: &str) -> Result<CtxFlags, GssError> {
    let service = Name::new(target.as_bytes(), Some(&GSS_NT_HOSTBASED_SERVICE))?;
    let mut mechanism = OidSet::new()?;
    mechanism.add(&GSS_MECH_KRB5)?;
    let credentials = Cred::acquire(None, None, CredUsage::Initiate, Some(&mechanism))?;
    // The client library sets all flags, and so allows delegating the client's own ticket. Whether that would happen is
    // known when the login is complete, which without mutual authentication is after one step.
    let flags = CtxFlags::GSS_C_DELEG_FLAG;
    let mut login = ClientCtx::new(Some(credentials), service, flags, Some(&GSS_MECH_KRB5));
    login.step(None, None)?;
    login.flags()
}

fn refusal(target: &str, error: GssError) -> Failure {
    let all = error.to_string();
    // Kerberos' own message follows the text that GSSAPI adds to every error.
    let words = all.split_once(" (").and_then(|(_, words)| words.strip_suffix(')')).unwrap_or(&all);
    let code = error.minor;
    // They are called flags, but they are numbers.
    let is = |flags: MajorFlags| error.major.bits() == flags.bits();
    // It is reported in several ways, depending on where it is found out.
    let is_expired = code == code::TICKET_EXPIRED
        || is(MajorFlags::GSS_S_CREDENTIALS_EXPIRED)
        || is(MajorFlags::GSS_S_CONTEXT_EXPIRED);
    let (words, advice) = match code {
        code::KDC_UNREACHABLE => return Failure::TryAgain(no_kdc(target, words)),
        code::SERVICE_UNKNOWN => {
            (words, "give the service and the host as they are in the principal of the servers' JAAS file")
        }
        code::CLIENT_UNKNOWN => {
            (words, "give the keytab of a principal that the KDC knows (KRB5_CLIENT_KTNAME)")
        }
        _ if is_expired => ("the client's own has expired", GET_ONE),
        _ if is(MajorFlags::GSS_S_NO_CRED) => (words, GET_ONE),
        _ => (words, "see klist for the ticket, krb5.conf for the realm, and the clocks"),
    };
    Failure::Refused(format!("Kerberos issued no ticket for {target} ({words}): {advice}"))
}

const GET_ONE: &str =
    "get one with kinit, or name a keytab in KRB5_CLIENT_KTNAME, with which tickets are renewed";

fn no_kdc(target: &str, words: &str) -> String {
    format!(
        "Kerberos issued no ticket for {target} ({words}): see that a KDC runs, and that krb5.conf names it"
    )
}
