//! Certificates for servers and clients, made by OpenSSL when they are wanted: none that is kept can expire.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files in which the certificates of an [`Ensemble`](crate::Ensemble) are, all PEM.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes them in a server's folder, which takes them with it.
    pub(crate) fn make(home: &Path) -> Result<Self, String> {
        let folder = home.join("tls");
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let certificates = Self { folder };
        for authority in ["ca", "stranger"] {
            certificates.openssl(authority, &["-addext", "keyUsage=keyCertSign"])?;
        }
        let name = "subjectAltName=DNS:localhost,IP:127.0.0.1";
        certificates.issue("server", "ca", &["-addext", name])?;
        certificates.issue("client", "ca", &[])?;
        certificates.issue("intruder", "stranger", &[])?;
        certificates.join()?;
        Ok(certificates)
    }

    /// The authority of server and client.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// The client's certificate.
    pub fn client(&self) -> PathBuf {
        self.folder.join("client.pem")
    }

    /// The key of the client's certificate.
    pub fn client_key(&self) -> PathBuf {
        self.folder.join("client.key")
    }

    /// An authority that has nothing to do with server or client.
    pub fn stranger(&self) -> PathBuf {
        self.folder.join("stranger.pem")
    }

    /// A client's certificate from that stranger.
    pub fn intruder(&self) -> PathBuf {
        self.folder.join("intruder.pem")
    }

    /// The key of the intruder's certificate.
    pub fn intruder_key(&self) -> PathBuf {
        self.folder.join("intruder.key")
    }

    /// Lines for `zoo.cfg`. The ports without TLS stay as they are, but for the implementation behind them.
    pub(crate) fn server_configuration(&self, port: u16) -> String {
        let folder = self.folder.display();
        format!(
            "secureClientPort={port}\nsecureClientPortAddress=127.0.0.1\n\
             serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             ssl.keyStore.type=PEM\nssl.keyStore.location={folder}/server-and-key.pem\n\
             ssl.trustStore.type=PEM\nssl.trustStore.location={folder}/ca.pem\nssl.clientAuth=need\n"
        )
    }

    fn issue(&self, name: &str, authority: &str, options: &[&str]) -> Result<(), String> {
        let (certificate, key) = (format!("{authority}.pem"), format!("{authority}.key"));
        let mut all = vec!["-CA", &certificate, "-CAkey", &key, "-addext", "basicConstraints=CA:FALSE"];
        all.extend(options);
        self.openssl(name, &all)
    }

    /// A certificate that is good for two days, and its key.
    fn openssl(&self, name: &str, options: &[&str]) -> Result<(), String> {
        let mut command = Command::new("openssl");
        command.current_dir(&self.folder).args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]);
        command.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", &format!("/CN={name}")]);
        command.args(["-out", &format!("{name}.pem"), "-keyout", &format!("{name}.key")]).args(options);
        let hint = "needed for TLS is OpenSSL 3 or later, on Debian: apt-get install openssl";
        match command.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("openssl: {}; {hint}", String::from_utf8_lossy(&output.stderr))),
            Err(error) => Err(format!("openssl: {error}; {hint}")),
        }
    }

    /// The server wants its certificate and key in one file.
    fn join(&self) -> Result<(), String> {
        let read = |name| fs::read_to_string(self.folder.join(name));
        let joined = read("server.key").and_then(|key| Ok(key + &read("server.pem")?));
        let written = joined.and_then(|text| fs::write(self.folder.join("server-and-key.pem"), text));
        written.map_err(|error| format!("{}: {error}", self.folder.display()))
    }
}
