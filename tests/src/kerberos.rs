//! A realm of Kerberos for a test: its KDC on loopback, and the tickets and keytabs of its principals.
//!
//! Everything is made when it is needed, in a separate folder, and is removed with the test.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use crate::ensemble::{Builder, Ensemble, new_folder};
use crate::port::Port;
use crate::process::Process;
use crate::wait::until;

/// The realm's name.
pub const REALM: &str = "EXAMPLE.COM";
/// How long the KDC may take to serve.
const STARTED: Duration = Duration::from_secs(20);

/// A KDC, and its [`Process`]. Dropping it ends it, and removes everything that it has issued.
#[derive(Debug)]
pub struct Kdc {
    process: Process,
    port: Port,
}

impl Deref for Kdc {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Kdc {
    /// Starts a KDC that knows these principals.
    ///
    /// # Panics
    ///
    /// If it does not start, or MIT Kerberos is not installed. The message says what to install.
    #[track_caller]
    pub fn start(principals: &[&str]) -> Self {
        let made = Self::make(principals);
        made.unwrap_or_else(|error| {
            panic!("a KDC: {error}; it needs MIT Kerberos (Debian: krb5-kdc krb5-admin-server krb5-user)")
        })
    }

    fn make(principals: &[&str]) -> io::Result<Self> {
        let home = new_folder()?;
        let port = Port::claim();
        let address = port.address();
        let folder = home.display();
        // Do not canonicalise names: name servers map loopback to different names on different machines.
        let client = format!(
            "[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n rdns = false\n \
             dns_canonicalize_hostname = false\n[realms]\n {REALM} = {{\n  kdc = {address}\n }}\n"
        );
        let server = format!(
            "[kdcdefaults]\n kdc_listen = {address}\n kdc_tcp_listen = {address}\n[realms]\n {REALM} = {{\n  database_name = \
             {folder}/principals\n  key_stash_file = {folder}/stash\n  acl_file = {folder}/acl\n }}\n[logging]\n kdc = STDERR\n"
        );
        fs::write(home.join("krb5.conf"), client)?;
        fs::write(home.join("kdc.conf"), server)?;
        let mut command = vec!["env".to_owned()];
        command.extend(environment(&home).map(|(name, value)| format!("{name}={value}")));
        command.extend(["krb5kdc", "-n"].map(str::to_owned));
        let kdc = Self { process: Process::new(&home, &command)?, port };
        kdc.run("kdb5_util", &["create", "-s", "-P", "of the test", "-r", REALM]);
        for principal in principals {
            kdc.admin(&format!("addprinc -randkey {principal}"));
        }
        kdc.process.try_start()?;
        let serves = || std::net::TcpStream::connect(kdc.port.address()).is_ok();
        if !until(STARTED, serves) {
            return Err(io::Error::other(format!("it does not serve:\n{}", kdc.log_tail())));
        }
        Ok(kdc)
    }

    /// The file that tells clients and servers where the KDC is: for `KRB5_CONFIG`.
    pub fn configuration(&self) -> PathBuf {
        self.home().join("krb5.conf")
    }

    /// A path in this KDC's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home().join(name)
    }

    /// A keytab of a principal: for `KRB5_CLIENT_KTNAME`.
    #[track_caller]
    pub fn keytab(&self, principal: &str) -> PathBuf {
        let file = self.path(&format!("{}.keytab", principal.replace('/', "-")));
        if !file.exists() {
            self.admin(&format!("ktadd -k {} {principal}", file.display()));
        }
        file
    }

    /// Forgets a principal.
    #[track_caller]
    pub fn forget(&self, principal: &str) {
        self.admin(&format!("delprinc -force {principal}"));
    }

    /// A credential cache with a ticket of a principal, got with these options of kinit: for `KRB5CCNAME`.
    #[track_caller]
    pub fn ticket(&self, principal: &str, options: &[&str]) -> PathBuf {
        let file = self.path(&format!("{principal}{}.cache", options.concat()));
        let (cache, keytab) = (file.display().to_string(), self.keytab(principal).display().to_string());
        self.run("kinit", &[options, &["-c", &cache, "-k", "-t", &keytab, principal]].concat());
        file
    }

    /// Waits until the ticket of a cache has expired.
    #[track_caller]
    pub fn wait_until_expired(&self, cache: &Path) {
        let is_good =
            || self.command("klist").arg("-s").arg(cache).status().is_ok_and(|status| status.success());
        assert!(until(STARTED, || !is_good()), "{} does not expire", cache.display());
    }

    /// Settings of servers that log in clients with a ticket for this principal, which the KDC must know.
    #[track_caller]
    pub fn servers(&self, principal: &str) -> Builder {
        let jaas = self.path(&format!("{}.jaas", principal.replace('/', "-")));
        let text = format!(
            "Server {{\n  com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true \
             useTicketCache=false isInitiator=false\n  keyTab=\"{}\" principal=\"{principal}@{REALM}\";\n}};\n",
            self.keytab(principal).display()
        );
        fs::write(&jaas, text).unwrap_or_else(|error| panic!("{}: {error}", jaas.display()));
        Ensemble::builder()
            .configure(crate::sasl::CONFIGURATION.trim_end())
            .property(&format!("java.security.auth.login.config={}", jaas.display()))
            .property(&format!("java.security.krb5.conf={}", self.configuration().display()))
    }

    #[track_caller]
    fn admin(&self, words: &str) {
        self.run("kadmin.local", &["-q", words]);
    }

    #[track_caller]
    fn run(&self, program: &str, arguments: &[&str]) {
        let output = self.command(program).args(arguments).output();
        let output =
            output.unwrap_or_else(|error| panic!("{program}: {error}; install MIT Kerberos' KDC and tools"));
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.envs(environment(self.home())).env("LC_ALL", "C");
        command
    }
}

/// Finds a program of Kerberos, some of which are only on the path of administrators.
fn environment(home: &Path) -> [(&'static str, String); 3] {
    let path = std::env::var("PATH").unwrap_or_default();
    [
        ("KRB5_CONFIG", home.join("krb5.conf").display().to_string()),
        ("KRB5_KDC_PROFILE", home.join("kdc.conf").display().to_string()),
        ("PATH", format!("{path}:/usr/sbin:/sbin")),
    ]
}
