//! `include/zklock.h` is generated from the comments and signatures of `zklock-ffi`.
//!
//! To generate it again: `ZKLOCK_WRITE=1 cargo test -p zklock-tests --test header`. The functions are in the order of `tasks.txt`.

mod tasks;

use cbindgen::{Config, DocumentationLength, DocumentationStyle, Language};
use std::path::{Path, PathBuf};
use zklock::face::Named;
use zklock::{ClientOptions, JobSpec, LockSpec};

/// The chapters at the top.
const CHAPTERS: &str = include_str!("chapters.h");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

fn generated() -> String {
    let mut config = Config {
        language: Language::C,
        header: Some(CHAPTERS.trim_end().replace("@INDEX@", &tasks::index())),
        trailer: Some(format!("#endif /* {GUARD} */")),
        no_includes: true,
        cpp_compat: true,
        documentation: true,
        documentation_style: DocumentationStyle::Doxy,
        documentation_length: DocumentationLength::Full,
        usize_is_size_t: true,
        line_length: 110,
        tab_width: 4,
        style: cbindgen::Style::Type,
        ..Config::default()
    };
    // Some enums are in no prototype.
    let (sources, enums) = sources();
    config.export.include = enums.clone();
    config.function.sort_by = Some(cbindgen::SortKey::None);
    config.function.must_use = Some("ZKLOCK_NODISCARD".to_owned());
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(sources.join("lib.rs"))
        .generate()
        .expect("the sources of zklock-ffi can be read")
        .write(&mut header);
    // cbindgen puts it on a line of its own only if the prototype is long.
    let header = String::from_utf8(header).unwrap().replace("ZKLOCK_NODISCARD zk", "ZKLOCK_NODISCARD\nzk");
    let version = env!("CARGO_PKG_VERSION");
    // The width of enums is declared if the language allows it, and checked if not.
    let (types, functions) = header.split_once(EXTERN).expect("the functions come last");
    let mut types = types.to_owned();
    for name in &enums {
        let (before, after) = types.split_once(&format!("}} {name};")).expect("every enum is in the header");
        let at = before.rfind(ENUM).expect("an enum has a beginning");
        let begun = format!("typedef enum {name} ZKLOCK_INT32 {{");
        types = format!("{}{begun}{}}} {name};{after}", &before[..at], &before[at + ENUM.len()..]);
    }
    let header = format!("{types}{WIDTH}{EXTERN}{}", tasks::in_order(functions));
    let parts = ["@MAJOR@", "@MINOR@", "@PATCH@"].into_iter().zip(version.split('.'));
    let header =
        parts.fold(header.replace("@VERSION@", version), |header, (name, part)| header.replace(name, part));
    let header = header.replace(" * @CLIENT_OPTIONS@\n", &listed(ClientOptions::NAMED));
    let header = header.replace(" * @LOCK_OPTIONS@\n", &listed(LockSpec::NAMED));
    header.replace(" * @JOB_OPTIONS@\n", &listed(JobSpec::NAMED))
}

/// A list of all options with names.
fn listed<T>(options: &[Named<T>]) -> String {
    let items = options.iter().map(|option| {
        let default = Some(option.default).filter(|default| !default.is_empty());
        let default = default.map(|default| format!(" Default: {default}.")).unwrap_or_default();
        tasks::item(&format!("{} ({}): {}.{default}", option.name, option.value.word(), option.about))
    });
    items.collect()
}

/// A copy of the sources without the macros around enums and functions, which cbindgen does not expand, and the names of
/// those enums.
fn sources() -> (PathBuf, Vec<String>) {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("header");
    std::fs::create_dir_all(&copy).unwrap();
    let (mut enums, ignorable) = (Vec::new(), clean_up());
    for file in std::fs::read_dir(root().join("zklock-ffi/src")).unwrap() {
        let file = file.unwrap();
        let (mut text, mut within) = (String::new(), "");
        for line in std::fs::read_to_string(file.path()).unwrap().lines() {
            if let Some(name) = line.strip_prefix("    pub enum ").filter(|_| !within.is_empty()) {
                enums.push(name.trim_end_matches(" {").to_owned());
            }
            match (within, line) {
                ("", "c_enum! {" | "export! {" | "noun! {" | "starts! {") => within = line,
                (_, "}") if !within.is_empty() => within = "",
                _ => text += &expanded(within, line),
            }
        }
        for function in text.clone().split(FUNCTION).skip(1) {
            let (name, rest) = function.split_once('(').expect("a function has parameters");
            let gives = rest.split_once(')').expect("they have an end").1;
            let must_use = gives.starts_with(" -> zklock_status") && !ignorable.contains(&name);
            let marks = if must_use { "#[must_use]\n#[no_mangle]" } else { "#[no_mangle]" };
            text = text.replacen(
                &format!("{FUNCTION}{name}("),
                &format!("{marks}\npub extern \"C\" fn {name}("),
                1,
            );
        }
        let text = text.replace("    pub enum ", "    #[repr(C)]\n    pub enum ");
        // An enum that C passes is looked up first, and has a type of its own in Rust.
        let text = given(&text);
        std::fs::write(copy.join(file.file_name()), text).unwrap();
    }
    enums.sort();
    (copy, enums)
}

/// A line within a macro, as the macro makes it.
fn expanded(within: &str, line: &str) -> String {
    match within {
        "starts! {" if line.starts_with(FUNCTION) => format!(
            "    /// @param[out] call the call. Free it with zklock_call_free.\n    /// @return ZKLOCK_OK. Other statuses come \
             with the result.\n{}, call: *mut *mut zklock_call) -> zklock_status {{\n",
            line.trim_end_matches(") {")
        ),
        "noun! {" if line.starts_with(FUNCTION) => format!("{} {{}}\n", line.trim_end_matches(';')),
        "noun! {" if line.starts_with("    pub struct ") => {
            format!("{} {{ _opaque: [u8; 0] }}\n", line.split(':').next().unwrap_or_default())
        }
        _ => format!("{line}\n"),
    }
}

/// The text with `E` in place of `Given<E>`.
fn given(text: &str) -> String {
    let mut parts = text.split("Given<");
    let before = parts.next().unwrap_or_default().to_owned();
    parts.fold(before, |before, part| before + &part.replacen('>', "", 1))
}

/// The functions whose status may be ignored, as the chapters name them.
fn clean_up() -> Vec<&'static str> {
    let (_, listed) = CHAPTERS.split_once("calls that clean up:").expect("the chapters name them");
    let (listed, _) = listed.split_once(". To").expect("a sentence has an end");
    listed.split([' ', ',', '\n', '*']).filter(|name| !name.is_empty()).collect()
}

/// How a function begins in `export!`.
const FUNCTION: &str = "    pub fn ";
const ENUM: &str = "typedef enum {";
/// The line before the functions.
const EXTERN: &str = "#ifdef __cplusplus\nextern \"C\" {";
const WIDTH: &str = "\
/**
 * Checks that enums have 32 bits, as in the library. If this fails, compile without -fshort-enums, or as
 * C++ or C23.
 */
typedef char zklock_enums_have_32_bits[sizeof(zklock_status) == sizeof(int32_t) ? 1 : -1];

";

const GUARD: &str = "ZKLOCK_H";

#[test]
fn the_header_is_what_the_sources_say() {
    let (path, generated) = (root().join("include/zklock.h"), generated());
    if std::env::var_os("ZKLOCK_WRITE").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = committed.lines().zip(generated.lines()).position(|(left, right)| left != right);
    assert!(
        committed == generated,
        "include/zklock.h differs from line {} on: ZKLOCK_WRITE=1 cargo test -p zklock-tests --test header",
        differs.map_or(committed.lines().count().min(generated.lines().count()), |line| line + 1)
    );
}
