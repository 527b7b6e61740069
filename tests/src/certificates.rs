//! Certificates for servers and clients. OpenSSL makes them when they are needed, so none can have expired.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name under which clients reach a server.
const SERVER_NAMES: &str = "subjectAltName=DNS:localhost,IP:127.0.0.1";

/// The files in which the certificates of an [`Ensemble`](crate::Ensemble) are, all PEM.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes them in a server's folder, and they are removed with it.
    pub(crate) fn make(home: &Path) -> Result<Self, String> {
        let folder = home.join("tls");
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let certificates = Self { folder };
        certificates.make_all()?;
        Ok(certificates)
    }

    fn make_all(&self) -> Result<(), String> {
        for authority in ["ca", "stranger"] {
            self.openssl(authority, &["-addext", "keyUsage=keyCertSign"])?;
        }
        self.issue("server", "ca", &["-addext", SERVER_NAMES])?;
        self.issue("client", "ca", &[])?;
        self.issue("intruder", "stranger", &[])?;
        self.join(&self.server(), &self.folder.join("server.key"))
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

    /// An authority that neither the server nor the client trusts.
    pub fn stranger(&self) -> PathBuf {
        self.folder.join("stranger.pem")
    }

    /// A client certificate from that authority.
    pub fn intruder(&self) -> PathBuf {
        self.folder.join("intruder.pem")
    }

    /// The key of that certificate.
    pub fn intruder_key(&self) -> PathBuf {
        self.folder.join("intruder.key")
    }

    /// The server's certificate, by which it is known as `localhost` and 127.0.0.1.
    pub fn server(&self) -> PathBuf {
        self.folder.join("server.pem")
    }

    /// The client's key, encrypted with a pass phrase by this OpenSSL command.
    ///
    /// # Panics
    ///
    /// If OpenSSL fails.
    pub fn encrypted_key(&self, name: &str, command: &[&str], pass_phrase: &str) -> PathBuf {
        let pass = format!("pass:{pass_phrase}");
        let files = ["-in", "client.key", "-out", name, "-passout", &pass];
        self.run(&[command, &files].concat()).unwrap_or_else(|reason| panic!("{reason}"));
        self.folder.join(name)
    }

    /// A certificate from the authority of server and client, and its key, valid from and until so many hours from now.
    /// It names a server.
    ///
    /// # Panics
    ///
    /// If OpenSSL fails.
    pub fn dated(&self, name: &str, from: i32, until: i32) -> (PathBuf, PathBuf) {
        let (key, request, out) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let new = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let subject = format!("/CN={name}");
        let made = self.run(&[&new[..], &["-subj", &subject, "-keyout", &key, "-out", &request]].concat());
        let configuration = format!(
            "[ca]\ndefault_ca=all\n[all]\ndatabase={name}.txt\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\n\
             policy=any\nx509_extensions=names\n[any]\ncommonName=supplied\n[names]\n{SERVER_NAMES}\n"
        );
        let file = format!("{name}.cnf");
        let signed = made.and_then(|()| {
            let written = fs::write(self.folder.join(&file), configuration)
                .and_then(|()| fs::write(self.folder.join(format!("{name}.txt")), ""));
            written.map_err(|error| error.to_string())?;
            let (start, end) = (hours_from_now(from)?, hours_from_now(until)?);
            let ca = ["ca", "-batch", "-notext", "-config", &file, "-cert", "ca.pem", "-keyfile", "ca.key"];
            self.run(
                &[&ca[..], &["-startdate", &start, "-enddate", &end, "-in", &request, "-out", &out]].concat(),
            )
        });
        signed.unwrap_or_else(|reason| panic!("{reason}"));
        (self.folder.join(out), self.folder.join(key))
    }

    /// Sets the certificate and key that a server uses from its next start on.
    ///
    /// # Panics
    ///
    /// If the files cannot be read or written.
    pub fn serve(&self, certificate: &Path, key: &Path) {
        self.join(certificate, key).unwrap_or_else(|reason| panic!("{reason}"));
    }

    /// Replaces the authority, and the certificates of server and client. Servers use them from their next start on.
    ///
    /// # Panics
    ///
    /// If OpenSSL fails.
    pub fn renew(&self) {
        let made = self.make_all();
        made.unwrap_or_else(|reason| panic!("{reason}"));
    }

    /// Lines for `zoo.cfg`. The ports without TLS work as before, with another implementation.
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
        let subject = format!("/CN={name}");
        let (out, key) = (format!("{name}.pem"), format!("{name}.key"));
        let mut all = vec!["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"];
        all.extend(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", &subject]);
        all.extend(["-out", &out, "-keyout", &key]);
        all.extend(options);
        self.run(&all)
    }

    fn run(&self, arguments: &[&str]) -> Result<(), String> {
        let hint = "needed for TLS is OpenSSL 3 or later, on Debian: apt-get install openssl";
        match Command::new("openssl").current_dir(&self.folder).args(arguments).output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("openssl: {}; {hint}", String::from_utf8_lossy(&output.stderr))),
            Err(error) => Err(format!("openssl: {error}; {hint}")),
        }
    }

    /// The server wants its certificate and key in one file.
    fn join(&self, certificate: &Path, key: &Path) -> Result<(), String> {
        let joined = fs::read_to_string(key).and_then(|key| Ok(key + &fs::read_to_string(certificate)?));
        let written = joined.and_then(|text| fs::write(self.folder.join("server-and-key.pem"), text));
        written.map_err(|error| format!("{}: {error}", self.folder.display()))
    }
}

/// A time in OpenSSL's format.
fn hours_from_now(hours: i32) -> Result<String, String> {
    let mut command = Command::new("date");
    let output = command.args(["-u", "-d", &format!("{hours} hours"), "+%Y%m%d%H%M%SZ"]).output();
    let output = output.map_err(|error| format!("date: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
