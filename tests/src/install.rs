//! Finds the ZooKeeper of this machine: `ZOOKEEPER_HOME`, otherwise the jars of the Debian package.

use std::path::{Path, PathBuf};

use crate::release;

const DEBIAN: &str = "/usr/share/java";

/// How to start this machine's ZooKeeper.
#[derive(Debug, Clone)]
pub(crate) struct Install {
    pub(crate) java: PathBuf,
    pub(crate) class_path: String,
}

impl Install {
    /// Looks for Java and ZooKeeper, of this release or of the installed one. The error says what to install.
    pub(crate) fn find(version: Option<&str>) -> Result<Self, String> {
        let class_path = version.map_or_else(find_class_path, release::class_path)?;
        Ok(Self { java: find_java()?, class_path })
    }
}

fn find_java() -> Result<PathBuf, String> {
    let homes = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = homes.into_iter().chain(std::env::split_paths(&path)).map(|folder| folder.join("java"));
    found.into_iter().find(|java| java.is_file()).ok_or_else(|| {
        "no `java` in JAVA_HOME or PATH; install a Java runtime, on Debian: apt-get install default-jre-headless"
            .to_owned()
    })
}

fn find_class_path() -> Result<String, String> {
    if let Some(home) = std::env::var_os("ZOOKEEPER_HOME") {
        let home = Path::new(&home);
        let jars = std::fs::read_dir(home.join("lib")).is_ok_and(|mut files| {
            files.any(|file| {
                file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("zookeeper"))
            })
        });
        // Before 3.5, ZooKeeper's own jar was beside lib.
        return if jars || home.join("zookeeper.jar").is_file() {
            Ok(format!("{0}/lib/*:{0}/*", home.display()))
        } else {
            Err(format!("ZOOKEEPER_HOME is {}, but no zookeeper*.jar is in its lib", home.display()))
        };
    }
    let main = Path::new(DEBIAN).join("zookeeper.jar");
    if main.is_file() {
        // Its manifest names everything that it needs, except what Netty needs for TLS. We choose the logging back end.
        Ok(format!("{DEBIAN}/zookeeper.jar:{DEBIAN}/netty-codec.jar:{DEBIAN}/slf4j-simple.jar"))
    } else {
        Err(format!(
            "no {}; install ZooKeeper (on Debian: apt-get install zookeeper default-jre-headless), or unpack a \
             release of it and set ZOOKEEPER_HOME to its folder",
            main.display()
        ))
    }
}
