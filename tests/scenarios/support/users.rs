//! Users that log in, and operators that are logged in as one of them.

use crate::support::{comes, options, proxied, soon};
use ground::{Proxy, shared};
use std::sync::Arc;
use zklock::further::{Access, Credentials};
use zklock::{Client, ClientOptions};
use zookeeper_client::{Acl, AuthId, Permission, SaslOptions};

/// A user, and its id in access lists: `printf %s ann:PASSWORD | openssl dgst -sha1 -binary | base64`.
#[derive(Clone, Copy)]
pub(crate) struct User {
    pub(crate) name: &'static str,
    pub(crate) password: &'static str,
    /// The password in base64, without the end, which depends on the bytes that follow.
    pub(crate) in_base64: &'static str,
    pub(crate) id: &'static str,
}

pub(crate) const ANN: User = User {
    name: "ann",
    password: "s3cret-of-ann",
    in_base64: "czNjcmV0LW9mLWFu",
    id: "ann:kYo25pPOT0HKGgdUmL8MxA259qk=",
};
/// The same user with another password: another user to the servers.
pub(crate) const NEW_ANN: User = User {
    name: "ann",
    password: "n3w-of-ann",
    in_base64: "bjN3LW9mLWFu",
    id: "ann:ToOuiY4jKEJQJCAuoXJsekZMMlA=",
};
pub(crate) const BOB: User = User {
    name: "bob",
    password: "s3cret-of-bob",
    in_base64: "czNjcmV0LW9mLWJv",
    id: "bob:vUfR65VUAHUocAPsqF5gdVqwsTQ=",
};

impl User {
    pub(crate) fn credentials(self) -> Credentials {
        Credentials::digest(self.name, self.password).unwrap()
    }

    /// The same by SASL.
    pub(crate) fn sasl(self) -> Credentials {
        Credentials::sasl(self.name, self.password).unwrap()
    }

    /// A line for a file of credentials.
    pub(crate) fn line(self) -> String {
        format!("{}:{}\n", self.name, self.password)
    }

    pub(crate) fn options(self, hosts: &str, access: Access) -> ClientOptions {
        options(hosts).credentials(self.credentials()).access(access)
    }

    /// A client of the shared server.
    pub(crate) async fn client(self, access: Access) -> Client {
        Client::connect(self.options(&shared().connect_string(), access)).await.unwrap()
    }

    /// The same, behind its own proxy.
    pub(crate) async fn proxied(self, access: Access) -> (Client, Proxy) {
        proxied(|options| options.credentials(self.credentials()).access(access)).await
    }

    /// An entry of an access list that allows this user everything.
    pub(crate) fn may_all(self) -> Acl {
        self.may(Permission::ALL)
    }

    pub(crate) fn may(self, permission: Permission) -> Acl {
        Acl::new(permission, AuthId::new("digest", self.id))
    }

    /// The same for a user that is logged in by SASL.
    pub(crate) fn may_all_by_sasl(self) -> Acl {
        Acl::new(Permission::ALL, AuthId::new("sasl", self.name))
    }

    /// An operator of these servers who is logged in by SASL as this user.
    pub(crate) async fn operator_by_sasl(self, hosts: &str) -> Operator {
        let connector = zookeeper_client::Client::connector();
        let connector = connector.with_sasl(SaslOptions::digest_md5(self.name, self.password));
        Operator(Arc::new(connector.connect(hosts).await.unwrap()))
    }

    /// An operator of the shared server who is logged in as this user.
    pub(crate) async fn operator(self) -> Operator {
        self.operator_at(&shared().connect_string()).await
    }

    /// The same for these servers.
    pub(crate) async fn operator_at(self, hosts: &str) -> Operator {
        let line = self.line();
        let connector = zookeeper_client::Client::connector().with_auth("digest", line.trim_end().as_bytes());
        Operator(Arc::new(connector.connect(hosts).await.unwrap()))
    }
}

/// An entry that allows everyone this much.
pub(crate) fn world(permission: Permission) -> Acl {
    Acl::new(permission, AuthId::anyone())
}

/// An operator with the rights of a user.
pub(crate) struct Operator(Arc<zookeeper_client::Client>);

impl Operator {
    pub(crate) async fn acl(&self, path: &str) -> Vec<Acl> {
        soon(self.0.get_acl(path)).await.unwrap_or_else(|error| panic!("{path}: {error}")).0
    }

    /// The paths of the children; empty if the node does not exist.
    pub(crate) async fn children(&self, path: &str) -> Vec<String> {
        match soon(self.0.list_children(path)).await {
            Ok(names) => names.iter().map(|name| format!("{path}/{name}")).collect(),
            Err(zookeeper_client::Error::NoNode) => Vec::new(),
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Waits until a node has this number of children.
    pub(crate) async fn wait_for_children(&self, path: &str, count: usize) {
        comes(async || self.children(path).await.len() == count).await;
    }

    pub(crate) async fn create(&self, path: &str, acl: &[Acl]) {
        let options = zookeeper_client::CreateMode::Persistent.with_acls(acl.into());
        soon(self.0.create(path, b"", &options)).await.unwrap();
    }

    pub(crate) async fn set_acl(&self, path: &str, acl: &[Acl]) {
        soon(self.0.set_acl(path, acl, None)).await.unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

/// A file of this test, with this text.
pub(crate) fn file(name: &str, text: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("zklock-access-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}
