//! Contenders of other libraries, our contenders in their naming schemes, and nodes with restricted access.

use ground::shared;
use ground::wire::{Admin, Mode};
use zklock::further::{Naming, Role};
use zklock::{Client, Lock, LockSpec};
use zookeeper_client::{Acl, Acls, AuthId, CreateMode, Permission};

/// A mutex, or a side of a read/write lock.
pub(crate) fn spec_in(path: &str, naming: &Naming, role: Role) -> LockSpec {
    let spec = match role {
        Role::Read => LockSpec::read_lock(path),
        Role::Write => LockSpec::write_lock(path),
        _ => LockSpec::mutex(path),
    };
    spec.unwrap().naming(naming.clone())
}

pub(crate) fn in_naming(client: &Client, path: &str, naming: &Naming, role: Role) -> Lock {
    client.lock(&spec_in(path, naming, role)).unwrap()
}

/// All naming schemes of a mutex, a reader and a writer.
pub(crate) const SPOKEN: [(Naming, Role); 7] = [
    (Naming::Curator, Role::Exclusive),
    (Naming::Curator, Role::Read),
    (Naming::Curator, Role::Write),
    (Naming::Kazoo, Role::Exclusive),
    (Naming::Kazoo, Role::Read),
    (Naming::Kazoo, Role::Write),
    (Naming::WriteLock, Role::Exclusive),
];

/// What contenders of the libraries write before their numbers.
pub(crate) const FOREIGN: [&str; 9] = [
    "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-lock-",
    // go-zookeeper's.
    "_c_0123456789abcdef0123456789abcdef-lock-",
    "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-__READ__",
    "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-__WRIT__",
    "0123456789abcdef0123456789abcdef__lock__",
    "0123456789abcdef0123456789abcdef__rlock__",
    "x-72057594037927936-",
    // Of a server with the number 128 or above.
    "x--9151314442816847872-",
    "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-latch-",
];

pub(crate) fn put(operator: &Admin, path: &str, prefix: &str) -> String {
    operator.create_all(path, "");
    operator.create_mode(&format!("{path}/{prefix}"), "stranger", Mode::EphemeralSequential)
}

/// Creates a node for which everybody has only this right.
pub(crate) async fn restricted(path: &str, permission: Permission) {
    let maker = zookeeper_client::Client::connect(&shared().connect_string()).await.unwrap();
    let acls = [Acl::new(permission, AuthId::anyone())];
    maker.create(path, b"", &CreateMode::Persistent.with_acls(Acls::from(&acls[..]))).await.unwrap();
}
