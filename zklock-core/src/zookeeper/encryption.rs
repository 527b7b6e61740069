//! Connections with TLS, if the options ask for it.

use crate::connect::options::ClientOptions;
#[cfg(feature = "tls")]
use zookeeper_client::TlsOptions;
use zookeeper_client::{Client, Connector, Error};

/// Adds the current certificates to the connector, or returns why they cannot be had.
#[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "only TLS uses them"))]
pub(super) async fn with_tls(options: &ClientOptions, connector: Connector) -> Result<Connector, String> {
    #[cfg(feature = "tls")]
    if let Some(tls) = &options.tls {
        let loaded = tls.current().await?;
        let mut settings = TlsOptions::new().with_pem_ca(&loaded.authorities_pem);
        if let Some((certificate, key)) = &loaded.identity_pem {
            settings = settings.and_then(|settings| settings.with_pem_identity(certificate, key));
        }
        // The library's error may contain parts of the key. Everything has been read successfully
        // before.
        let settings =
            settings.map_err(|_| "TLS: the client library cannot read the certificates".to_owned())?;
        return Ok(connector.with_tls(settings));
    }
    Ok(connector)
}

#[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "without TLS no option is needed"))]
pub(super) async fn connect(
    options: &ClientOptions,
    connector: Connector,
    hosts: &str,
) -> Result<Client, Error> {
    #[cfg(feature = "tls")]
    if options.tls.is_some() {
        return connector.secure_connect(hosts).await;
    }
    connector.connect(hosts).await
}
