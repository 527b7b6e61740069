//! The environment of what runs under a lock.

use std::process::Command;

use zklock::Hold;

/// Variables, and their values; one without a value is taken out of the environment.
#[derive(Clone, Debug)]
pub(crate) struct Variables(Vec<(&'static str, Option<String>)>);

impl Variables {
    /// Returns the variables that tell of a hold.
    pub(crate) fn of(hold: &Hold, ensemble: Option<&str>) -> Self {
        Self(vec![
            ("ZKLOCK_TOKEN", Some(hold.token().to_string())),
            ("ZKLOCK_LOCK", Some(hold.path().to_owned())),
            ("ZKLOCK_NODE", Some(hold.node().to_owned())),
            // That of a hold around this one goes with its token, not with ours.
            ("ZKLOCK_ENSEMBLE", ensemble.map(str::to_owned)),
        ])
    }

    pub(crate) fn and(mut self, name: &'static str, value: Option<String>) -> Self {
        self.0.push((name, value));
        self
    }

    /// Sets them for this command.
    pub(crate) fn set(&self, command: &mut Command) {
        for (name, value) in &self.0 {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }

    /// Returns them as a shell sets them. Nothing in a value is an order to the shell.
    pub(crate) fn assignments(&self) -> String {
        let (mut unset, mut export) = (String::new(), "export".to_owned());
        for (name, value) in &self.0 {
            match value {
                Some(value) => export += &format!(" {name}='{}'", value.replace('\'', r"'\''")),
                None => unset += &format!("unset {name}; "),
            }
        }
        // What comes last succeeds, and so does the whole.
        format!("{unset}{export}\n")
    }
}
