//! Releases of ZooKeeper other than the installed one. Maven downloads their jars to `target`.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/zookeeper");

/// Dependencies that servers since 3.6 need, but do not declare.
const UNSAID: [[&str; 3]; 2] =
    [["io.dropwizard.metrics", "metrics-core", "4.1.12.1"], ["org.xerial.snappy", "snappy-java", "1.1.10.5"]];

/// The class path of a release, such as 3.4.14. Its jars are downloaded on first use.
pub(crate) fn class_path(version: &str) -> Result<String, String> {
    let jars = Path::new(KEPT).join(version);
    if !jars.is_dir() {
        let failed = |error| format!("the jars of ZooKeeper {version}: {error}");
        let random = RandomState::new().hash_one(Instant::now());
        let folder = Path::new(KEPT).join(format!("{version}-{random:016x}"));
        fs::create_dir_all(&folder).map_err(failed)?;
        let fetched = fetch(version, &folder);
        // Another test may have been faster.
        if fetched.is_ok() && fs::rename(folder.join("jars"), &jars).is_err() && !jars.is_dir() {
            return Err(format!("no folder {}", jars.display()));
        }
        fs::remove_dir_all(&folder).map_err(failed)?;
        fetched?;
    }
    Ok(format!("{}/*", jars.display()))
}

fn fetch(version: &str, folder: &Path) -> Result<PathBuf, String> {
    let zookeeper = ["org.apache.zookeeper", "zookeeper", version];
    let is_old = ["3.4.", "3.5."].iter().any(|old| version.starts_with(old));
    let unsaid = UNSAID.iter().filter(|_| !is_old);
    let dependencies: String = [zookeeper].iter().chain(unsaid).map(dependency).collect();
    let project = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>zklock</groupId><artifactId>ground</artifactId>\
         <version>1</version><dependencies>{dependencies}</dependencies></project>"
    );
    fs::write(folder.join("pom.xml"), project).map_err(|error| format!("{}: {error}", folder.display()))?;
    let jars = folder.join("jars");
    let output = Command::new("mvn")
        .args(["-q", "-B", "-Dstyle.color=never", "dependency:copy-dependencies"])
        .arg(format!("-DoutputDirectory={}", jars.display()))
        .current_dir(folder)
        .output()
        .map_err(|error| format!("ZooKeeper {version} is fetched by Maven (Debian: maven): {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "Maven has not got ZooKeeper {version}: {}",
            String::from_utf8_lossy(&output.stdout)
        ));
    }
    Ok(jars)
}

fn dependency([group, artifact, version]: &[&str; 3]) -> String {
    format!(
        "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>\
         </dependency>"
    )
}
