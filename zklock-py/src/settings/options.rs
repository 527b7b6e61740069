//! The options of a client.

use crate::guest::error::{invalid, raised};
use crate::settings::credentials::{access, logins};
use crate::settings::keyword::of_signature;
use crate::settings::tls::Tls;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zklock::ClientOptions;

/// From here on, a session timeout must be meant in milliseconds, as in ZooKeeper's own settings: servers grant 40 s by
/// default.
const MILLISECONDS: f64 = 1000.0;

/// The options of the class. Python 3.9 does not keep the signature of a class.
const SIGNATURE: &str = "(*, session_timeout=10, connect_timeout=10, try_timeout=1, chroot=None, create_chroot=False, \
                         identity=None, tls=None, auth=None, access='open', server_version=None, heartbeat=True, \
                         loss_timeout=None)";

/// Makes the options of a client from the arguments of its class.
pub(crate) fn options_of(
    py: Python<'_>,
    hosts: &str,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<ClientOptions> {
    let fail = |error| raised(py, &error);
    let given = given.map_or_else(|| Ok(Vec::new()), |given| of_signature(SIGNATURE, given))?;
    let mut options = match given.iter().find(|option| option.name == "tls") {
        Some(tls) => tls.get::<Py<Tls>>()?.get().options.clone().hosts(hosts),
        None => ClientOptions::new(hosts),
    };
    for option in given {
        options = match option.name.as_str() {
            "tls" => options,
            "auth" => logins(&option.value)?.into_iter().fold(options, ClientOptions::credentials),
            "access" => options.access(access(&option.value)?),
            "server_version" => {
                let (major, minor) = option.get()?;
                options.server_version(major, minor)
            }
            name => {
                let is_in_milliseconds =
                    |seconds: &f64| name == "session_timeout" && *seconds >= MILLISECONDS;
                if let Some(given) = option.get().ok().filter(is_in_milliseconds) {
                    let message = format!(
                        "session_timeout={given}: it is in seconds, and no server grants that many; write session_timeout={} \
                         for {given} ms",
                        given / MILLISECONDS
                    );
                    return Err(invalid(py, message));
                }
                option.set(ClientOptions::NAMED, options, ClientOptions::set)?
            }
        };
    }
    options.check().map_err(fail)?;
    Ok(options)
}
