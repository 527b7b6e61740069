//! Lists nodes, for tools that look for locks without knowing where they are.

use crate::base::error::Error;
use crate::client::client::Client;
use crate::connect::path::check_path;
use crate::machine::protocol::{Operation, Outcome};
use crate::session::ask::{ask, catch_up, request};
use std::sync::Arc;

impl Client {
    /// Lists the names of the nodes directly below this one, in alphabetical order. The list is empty if the node does not
    /// exist. `/` is the root, or the chroot.
    ///
    /// The list includes the nodes of contenders. [`Lock::contenders`](crate::Lock::contenders) shows which these are, and
    /// whose.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a bad path;
    /// * [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if the ensemble does not answer within the connect
    ///   timeout;
    /// * [`ErrorKind::Refused`](crate::ErrorKind::Refused) if the access list does not allow reading the node;
    /// * [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// for name in client.children("/locks").await? {
    ///     let path = format!("/locks/{name}");
    ///     println!("{path}: {} contenders", client.mutex(&path)?.contenders().await?.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn children(&self, path: &str) -> Result<Vec<String>, Error> {
        check_path(path)?;
        let directory: &Arc<str> = &path.into();
        let problem = || format!("the nodes below {path} could not be listed");
        ask(self.pool(), problem, |session| async move {
            catch_up(&session, directory).await?;
            match request(&session, Operation::List { directory: directory.clone() }).await? {
                (Outcome::Children(mut names), _) => {
                    names.sort_unstable();
                    Ok(names)
                }
                _ => Ok(Vec::new()),
            }
        })
        .await
    }
}
