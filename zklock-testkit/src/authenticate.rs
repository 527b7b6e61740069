//! Logins of clients.

use crate::access::Id;
use crate::code::Code;
use crate::jute::{Malformed, Reader};
use crate::world::{Asked, World};

impl World {
    pub(crate) fn authenticate(
        &mut self,
        connection: u64,
        asked: Asked,
        reader: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        let (_kind, scheme, proof) = (reader.int()?, reader.text()?, reader.buffer()?.unwrap_or_default());
        let asked = Asked { zxid: Some(0), ..asked };
        let known = match scheme.as_deref() {
            Some("digest") => Some(Id::digest(proof)),
            // The address is already known.
            Some("ip") => None,
            _ => {
                self.reply(connection, asked, Code::AuthFailed, |body| body);
                return Err(Malformed);
            }
        };
        if let Some(there) = self.connections.get_mut(&connection) {
            let known = known.filter(|id| !there.shown.contains(id));
            there.shown.extend(known);
        }
        self.reply(connection, asked, Code::Ok, |body| body);
        Ok(())
    }
}
