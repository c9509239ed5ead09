//! Published advisories about the crates of the build, from a copy of the database of RUSTSEC (K6).
//!
//! `DICTA_ADVISORIES` names the folder of the copy, because the campaign needs no network:
//! <https://github.com/rustsec/advisory-db>.

use std::path::Path;

/// The variable that names the folder.
pub(crate) const VARIABLE: &str = "DICTA_ADVISORIES";

/// What the database has about the crates of the build.
#[derive(Default)]
pub(crate) struct Found {
    /// The advisories that were read.
    pub(crate) compared: usize,
    /// Vulnerabilities of the versions in the build.
    pub(crate) vulnerable: Vec<String>,
    /// Notes without a vulnerability, for example about crates that nobody maintains.
    pub(crate) notes: Vec<String>,
}

/// A version without its build metadata; a pre-release counts as its release.
type Version = [u64; 3];

/// Compares the packages with the advisories below `folder`.
pub(crate) fn compare(folder: &Path, packages: &[(String, String)]) -> Result<Found, String> {
    let crates = folder.join("crates");
    if !crates.is_dir() {
        return Err(format!(
            "{VARIABLE}: {} has no folder `crates`",
            folder.display()
        ));
    }
    let mut found = Found::default();
    for (name, version) in packages {
        let entries = std::fs::read_dir(crates.join(name));
        for entry in entries.into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(entry.path()).map_err(|why| why.to_string())?;
            let Some(advisory) = read_front_matter(&text) else {
                return Err(format!("{} is not an advisory", entry.path().display()));
            };
            found.compared += 1;
            if advisory.contains("\nwithdrawn = ") || is_safe(advisory, parse_version(version)) {
                continue;
            }
            let id = entry.file_name().to_string_lossy().replace(".md", "");
            let told = format!("{name} {version}: {id}");
            if advisory.contains("\ninformational = ") {
                found.notes.push(told);
            } else {
                found.vulnerable.push(told);
            }
        }
    }
    Ok(found)
}

/// The TOML between the fences at the start of an advisory.
fn read_front_matter(text: &str) -> Option<&str> {
    text.split_once("```toml")?
        .1
        .split_once("```")
        .map(|(toml, _)| toml)
}

/// True if the version is patched or was never affected.
fn is_safe(advisory: &str, version: Version) -> bool {
    ["patched", "unaffected"].iter().any(|key| {
        let requirements = read_list(advisory, key);
        requirements.iter().any(|text| matches_all(text, version))
    })
}

/// The texts of `key = ["…", "…"]`, on one line or on several.
fn read_list(toml: &str, key: &str) -> Vec<String> {
    let Some((_, rest)) = toml.split_once(&format!("\n{key} = [")) else {
        return Vec::new();
    };
    let list = rest.split(']').next().unwrap_or_default();
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// True if the version satisfies each part of `>= 1.2, < 2`.
fn matches_all(requirement: &str, version: Version) -> bool {
    requirement
        .split(',')
        .all(|part| matches_part(part.trim(), version))
}

fn matches_part(part: &str, version: Version) -> bool {
    let end = part
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(part.len());
    let (operator, number) = part.split_at(end);
    let least = parse_version(number);
    let given = number
        .split(['-', '+'])
        .next()
        .unwrap_or_default()
        .split('.')
        .count();
    match operator.trim() {
        ">=" => version >= least,
        ">" => version > least,
        "<" => version < least,
        "<=" => version <= least,
        "=" => version[..given.min(3)] == least[..given.min(3)],
        "~" => {
            let same = given.clamp(1, 2);
            version >= least && version[..same] == least[..same]
        }
        "^" | "" => {
            // The first number that is not 0 may not change.
            let fixed = least.iter().position(|number| *number > 0).unwrap_or(2);
            version >= least && version[..=fixed] == least[..=fixed]
        }
        "*" => true,
        _ => false,
    }
}

fn parse_version(text: &str) -> Version {
    let release = text.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = release
        .split('.')
        .map(|number| number.trim().parse().unwrap_or(0));
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}

/// A failed assertion is a problem of the campaign itself: the comparison of versions is wrong.
pub(crate) fn check_matching() {
    const ADVISORY: &str = "x\n```toml\n[advisory]\nid = \"R\"\n\n[versions]\npatched = [\">= 1.2.3, < 2\", \"^0.9.4\"]\nunaffected = [\n  \"< 0.5\",\n]\n```\n";
    let toml = read_front_matter(ADVISORY).expect("TOML");
    for (version, safe) in [
        ("1.2.3", true),
        ("1.9.0", true),
        ("2.0.0", false),
        ("1.2.2", false),
        ("0.9.4", true),
        ("0.9.3", false),
        ("0.10.0", false),
        ("0.4.9", true),
        ("0.5.0", false),
    ] {
        assert_eq!(is_safe(toml, parse_version(version)), safe, "{version}");
    }
}
