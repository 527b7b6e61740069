//! The options of a client.

use crate::guest::error::{invalid, raised};
use crate::guest::number::seconds;
use crate::settings::tls::Tls;
use pyo3::prelude::*;
use zklock::ClientOptions;

/// From here on, a session timeout must be meant in milliseconds, as in ZooKeeper's own settings: servers grant 40 s by
/// default.
const MILLISECONDS: f64 = 1000.0;

/// The timeouts of a client, in seconds.
pub(crate) struct Timeouts {
    pub(crate) session: f64,
    pub(crate) connect: f64,
    /// For calls that do not wait for others.
    pub(crate) trying: f64,
    /// How soon a holder must learn of a loss.
    pub(crate) loss_timeout: Option<f64>,
}

/// Makes the options of a client from its arguments.
pub(crate) fn options(
    py: Python<'_>,
    hosts: &str,
    timeouts: &Timeouts,
    chroot: Option<&str>,
    identity: Option<&str>,
    tls: Option<&Tls>,
    server_version: Option<(u32, u32)>,
) -> PyResult<ClientOptions> {
    let fail = |error| raised(py, &error);
    if timeouts.session >= MILLISECONDS {
        let (given, meant) = (timeouts.session, timeouts.session / 1000.0);
        let message = format!(
            "session_timeout={given}: it is in seconds, and no server grants that many; write session_timeout={meant} for \
             {given} ms"
        );
        return Err(invalid(py, message));
    }
    let session_timeout = seconds(py, "session_timeout", timeouts.session)?;
    let connect_timeout = seconds(py, "connect_timeout", timeouts.connect)?;
    let try_timeout = seconds(py, "try_timeout", timeouts.trying)?;
    let mut options = ClientOptions::new(hosts).map_err(fail)?;
    options = options.session_timeout(session_timeout).connect_timeout(connect_timeout);
    options = options.try_timeout(try_timeout);
    if let Some(loss_timeout) = timeouts.loss_timeout {
        options = options.loss_timeout(seconds(py, "loss_timeout", loss_timeout)?);
    }
    if let Some(chroot) = chroot {
        options = options.chroot(chroot);
    }
    if let Some(identity) = identity {
        options = options.identity(identity);
    }
    if let Some((major, minor)) = server_version {
        options = options.server_version(major, minor);
    }
    #[cfg(feature = "tls")]
    if let Some(tls) = tls {
        options = options.tls(tls.core());
    }
    #[cfg(not(feature = "tls"))]
    let _ = tls;
    Ok(options)
}
