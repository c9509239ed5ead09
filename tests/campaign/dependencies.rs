//! The crates that dicta is built from (K6, K7).

use std::process::Command;

use serde_json::Value;

use crate::advisories;
use crate::terminals::conclude;
use crate::{Campaign, Measured};

/// Licences that allow use in any program. A crate with a choice of licences needs one of them.
const LICENCES: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "CC0-1.0",
    "0BSD",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "WTFPL",
    // Its terms end at its own files.
    "MPL-2.0",
];

/// Crates without maintenance or with unsound code.
const AVOIDED: &[&str] = &[
    "serde_yml",
    "serde_yaml",
    "yaml-rust",
    "backoff",
    "instant",
    "atty",
    "bincode",
];

/// The first version of a crate without a published vulnerability.
const FIXED: &[(&str, [u64; 3])] = &[
    ("idna", [1, 0, 0]),
    ("tracing-subscriber", [0, 3, 20]),
    ("h2", [0, 4, 16]),
    ("time", [0, 3, 47]),
];

/// Reads the lock file as one text for each package.
fn read_lock(campaign: &Campaign) -> Vec<String> {
    let lock = std::fs::read_to_string(campaign.repository.join("Cargo.lock"));
    let lock = lock.expect("Cargo.lock is in the repository");
    let packages: Vec<String> = lock
        .split("[[package]]")
        .skip(1)
        .map(str::to_owned)
        .collect();
    assert!(packages.len() > 100, "{} locked packages", packages.len());
    packages
}

/// Reads the packages from cargo, without the network.
fn read_packages(campaign: &Campaign) -> Result<Vec<Value>, String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(&campaign.repository)
        .args(["metadata", "--locked", "--offline", "--format-version", "1"])
        .output()
        .map_err(|error| format!("cargo doesn't start: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| "cargo can't list the packages without the network".to_owned())?;
    let packages = metadata["packages"].as_array().cloned();
    packages.ok_or_else(|| "cargo lists no packages".to_owned())
}

/// Sources, checksums, licences, and the ban of unsafe code (K6).
pub(crate) fn measure_sources(campaign: &Campaign) -> Measured {
    let packages = match read_packages(campaign) {
        Ok(packages) => packages,
        Err(reason) => return Measured::Skipped(reason),
    };
    let mut problems = Vec::new();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        if !is_allowed(licence) {
            problems.push(format!("{name} has the licence `{licence}`"));
        }
        let source = package["source"].as_str();
        let is_registry = |source: &str| {
            source.starts_with("registry+https://github.com/rust-lang/crates.io-index")
        };
        if name != "dicta" && !source.is_some_and(is_registry) {
            problems.push(format!("{name} comes from {source:?}"));
        }
    }
    for block in &read_lock(campaign) {
        if !block.contains("checksum = ") && !block.contains("name = \"dicta\"") {
            problems.push(format!(
                "no checksum: {}",
                block.trim().lines().next().unwrap_or_default()
            ));
        }
    }
    let manifest =
        std::fs::read_to_string(campaign.repository.join("Cargo.toml")).unwrap_or_default();
    if !manifest.contains("unsafe_code = \"forbid\"") {
        problems.push("Cargo.toml allows unsafe code".to_owned());
    }
    let builds = list_builds(campaign);
    if builds.len() < 4 {
        problems.push(format!("only {} commands build dicta", builds.len()));
    }
    let unlocked = builds.iter().filter(|build| !build.contains(" --locked"));
    problems.extend(unlocked.map(|build| format!("`{build}` ignores the lock file")));
    let figure = format!(
        "sources, checksums and licences of {} crates, {} commands that build with the lock file",
        packages.len(),
        builds.len()
    );
    advisories::check_matching(campaign);
    let packages: Vec<(String, String)> = packages
        .iter()
        .map(|package| {
            let field = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
            (field("name"), field("version"))
        })
        .collect();
    let database = match advisories::Database::read(campaign, &packages) {
        Ok(database) => database,
        Err(reason) => return Measured::Skipped(reason),
    };
    let found = database.compare(&packages);
    problems.extend(found.vulnerable);
    let notes = match found.notes.as_slice() {
        [] => String::new(),
        notes => format!(", notes without a vulnerability: {}", notes.join(", ")),
    };
    let figure = format!(
        "{figure}; {} advisories of {} compared{notes}",
        found.compared, database.origin
    );
    conclude(&figure, &problems)
}

/// The lines of scripts that build dicta.
fn list_builds(campaign: &Campaign) -> Vec<String> {
    const BUILDS: [&str; 6] = [
        "cargo build ",
        "cargo test ",
        "cargo clippy ",
        "cargo doc ",
        "cargo deb ",
        "maturin build ",
    ];
    let scripts = [".ci/run", "packaging/build"];
    let texts = scripts.map(|script| std::fs::read_to_string(campaign.repository.join(script)));
    let texts = texts.map(|text| text.expect("the script is in the repository"));
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim);
    lines
        .filter(|line| !line.starts_with('#') && BUILDS.iter().any(|build| line.contains(build)))
        .map(str::to_owned)
        .collect()
}

/// `MIT OR Apache-2.0`, `(A OR B) AND C`, and the old `A/B`.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace(" / ", " OR ").replace('/', " OR ");
    expression.split(" AND ").all(|part| {
        let part = part.trim().trim_matches(['(', ')']);
        part.split(" OR ").any(|licence| {
            // An exception only adds rights.
            let licence = licence.split(" WITH ").next().unwrap_or_default();
            LICENCES.contains(&licence.trim().trim_matches(['(', ')']))
        })
    })
}

/// Crates to avoid, and the lowest versions (K7).
pub(crate) fn measure_bans(campaign: &Campaign) -> Measured {
    let (mut avoided, mut problems) = (Vec::new(), Vec::new());
    for block in &read_lock(campaign) {
        let field = |name: &str| {
            let start = block.find(&format!("{name} = \""))? + name.len() + 4;
            block[start..].split('"').next()
        };
        let (name, version) = (
            field("name").unwrap_or_default(),
            field("version").unwrap_or_default(),
        );
        if AVOIDED.contains(&name) {
            avoided.push(format!("{name} {version}"));
        }
        if let Some((_, least)) = FIXED.iter().find(|(fixed, _)| *fixed == name) {
            let numbers: Vec<u64> = version
                .split(['.', '-', '+'])
                .filter_map(|number| number.parse().ok())
                .collect();
            if numbers.as_slice() < least.as_slice() {
                problems.push(format!("{name} {version} has a published vulnerability"));
            }
        }
    }
    // syntect loads its built-in syntaxes with bincode 1, from data inside the program.
    let others: Vec<String> = avoided
        .iter()
        .filter(|name| !name.starts_with("bincode 1."))
        .cloned()
        .collect();
    problems.extend(others.iter().map(|name| format!("{name} is in the build")));
    let figure = format!(
        "{} crates to avoid and {} lowest versions",
        AVOIDED.len(),
        FIXED.len()
    );
    match conclude(&figure, &problems) {
        Measured::Reached(figure) if !avoided.is_empty() => Measured::Partly(format!(
            "{figure}; {} is in the build: syntect reads its built-in syntaxes with it, and nothing else",
            avoided.join(", ")
        )),
        measured => measured,
    }
}
