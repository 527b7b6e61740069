//! How a client connects, for a guardian that has to reach the same servers as the same user.

use super::ClientOptions;
use crate::base::error::{Error, ErrorKind};
use crate::base::parts::Parts;
use crate::connect::credentials::Credentials;
use crate::connect::level::ServerLevel;

const HOSTS: u8 = b'h';
const VERSION: u8 = b'v';

impl ClientOptions {
    /// Returns everything that another process needs to reach the servers, passwords included. Give it to processes of the
    /// same user only.
    #[doc(hidden)]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut parts = Parts::default();
        parts.text(HOSTS, self.hosts.connect_string().as_bytes());
        match self.server_level {
            Some(ServerLevel::V3_4) => parts.text(VERSION, &[3, 4]),
            Some(ServerLevel::V3_5) => parts.text(VERSION, &[3, 5]),
            None => {}
        }
        for credentials in &self.credentials {
            credentials.pass_on(&mut parts);
        }
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            tls.pass_on(&mut parts);
        }
        parts.into_bytes()
    }

    /// Reads the options that [`to_bytes`](Self::to_bytes) returned. Files are read, and what is in them is checked.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the bytes are anything else, or a file cannot be used; [`ErrorKind::Refused`] if this
    /// program was built without a feature that they need.
    #[doc(hidden)]
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let unknown = || {
            let message = "these options are of another version of zklock: install the same version of the library and the command";
            Error::new(ErrorKind::InvalidInput, message)
        };
        let parts = Parts::read(bytes).ok_or_else(unknown)?;
        let (hosts, rest) = match parts.split_first() {
            Some(((HOSTS, hosts), rest)) => (std::str::from_utf8(hosts).map_err(|_| unknown())?, rest),
            _ => return Err(unknown()),
        };
        let (servers, chroot) = hosts.split_at(hosts.find('/').unwrap_or(hosts.len()));
        let mut options = Self::new(servers)?;
        if !chroot.is_empty() {
            options = options.chroot(chroot)?;
        }
        #[cfg(feature = "tls")]
        let mut tls = crate::connect::tls::PassedOn::default();
        for (letter, text) in rest {
            #[cfg(feature = "tls")]
            if tls.take(*letter, text)? {
                continue;
            }
            options = match (*letter, *text) {
                (VERSION, [major, minor]) => options.server_version((*major).into(), (*minor).into())?,
                _ => options.credentials(Credentials::passed_on(*letter, text).ok_or_else(unknown)??),
            };
        }
        #[cfg(feature = "tls")]
        if let Some(tls) = tls.tls()? {
            options = options.tls(tls);
        }
        options.check()?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn again(options: &ClientOptions) -> ClientOptions {
        ClientOptions::from_bytes(&options.to_bytes()).unwrap()
    }

    #[test]
    fn another_process_can_connect_with_the_same_options() {
        let file = std::env::temp_dir().join(format!("zklock-passed-on-{}", std::process::id()));
        fs::write(&file, "bob:secret\n").unwrap();
        let options = ClientOptions::new("zk1:2182,[::1]:99/apps").unwrap().server_version(3, 4).unwrap();
        let options = options
            .credentials(Credentials::digest("ann", "with:colon").unwrap())
            .credentials(Credentials::from_file(&file).unwrap())
            .credentials(Credentials::sasl_from_file(&file).unwrap());
        let other = again(&options);
        assert_eq!(format!("{:?}", other.credentials), format!("{:?}", options.credentials));
        assert_eq!(other.hosts, options.hosts);
        assert_eq!(other.server_level, options.server_level);
        // Only these bytes show the passwords.
        assert_eq!(other.to_bytes(), options.to_bytes());
        let chrooted = options.clone().chroot("/with,comma").unwrap();
        assert_eq!(again(&chrooted).hosts, chrooted.hosts);
        fs::remove_file(&file).unwrap();
        let error = ClientOptions::from_bytes(&options.to_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    }

    #[test]
    fn what_is_of_another_version_is_refused() {
        let mut strange = ClientOptions::new("zk1").unwrap().to_bytes();
        strange.extend_from_slice(&[b'z', 0, 0, 0, 0]);
        for bytes in [&b""[..], b"x", &strange, &[b'v', 0, 0, 0, 2, 3, 5]] {
            let error = ClientOptions::from_bytes(bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{bytes:?}");
            assert!(error.to_string().contains("the same version"), "{error}");
        }
    }
}
