//! Published advisories about the crates of the build, from a copy of the database of RUSTSEC (K6).
//!
//! `corpora/` has a copy, because the campaign needs no network. `DICTA_ADVISORIES` names the folder of a newer one:
//! <https://github.com/rustsec/advisory-db>.

use std::collections::HashMap;
use std::path::Path;

use crate::{Campaign, corpora};

/// The copy in `corpora/`, its member, and the date of its last change.
const COPY: &str = "advisories.zip";
const COPY_MEMBER: &str = "advisories.md";
const COPY_DATE: &str = "2026-08-21";
/// The variable that names the folder of a newer copy.
const VARIABLE: &str = "DICTA_ADVISORIES";

/// The result of a comparison of the crates with the database.
#[derive(Default)]
pub(crate) struct Found {
    /// The advisories that were read.
    pub(crate) compared: usize,
    /// Vulnerabilities of the versions in the build.
    pub(crate) vulnerable: Vec<String>,
    /// Notes without a vulnerability, for example about crates without a maintainer.
    pub(crate) notes: Vec<String>,
}

/// A version without its build metadata; a pre-release counts as its release.
type Version = [u64; 3];

/// The advisories about each crate: the name of the advisory and its TOML.
pub(crate) struct Database {
    by_crate: HashMap<String, Vec<(String, String)>>,
    /// The origin of the advisories.
    pub(crate) origin: String,
}

impl Database {
    /// Reads the folder that [`VARIABLE`] names, or else the copy in `corpora/`.
    pub(crate) fn read(campaign: &Campaign, packages: &[(String, String)]) -> Result<Self, String> {
        match std::env::var_os(VARIABLE) {
            Some(folder) => Self::read_folder(Path::new(&folder), packages),
            None => Self::read_copy(&corpora::unpack(campaign, COPY)[COPY_MEMBER]),
        }
    }

    fn read_folder(folder: &Path, packages: &[(String, String)]) -> Result<Self, String> {
        let crates = folder.join("crates");
        if !crates.is_dir() {
            return Err(format!(
                "{VARIABLE}: {} has no folder `crates`",
                folder.display()
            ));
        }
        let mut by_crate: HashMap<String, Vec<(String, String)>> = HashMap::new();
        for (name, _) in packages {
            let entries = std::fs::read_dir(crates.join(name));
            let mut advisories = Vec::new();
            for entry in entries.into_iter().flatten().flatten() {
                let text = std::fs::read_to_string(entry.path()).map_err(|why| why.to_string())?;
                let Some(advisory) = read_front_matter(&text) else {
                    return Err(format!("{} is not an advisory", entry.path().display()));
                };
                let id = entry.file_name().to_string_lossy().replace(".md", "");
                advisories.push((id, advisory.to_owned()));
            }
            by_crate.insert(name.clone(), advisories);
        }
        Ok(Self {
            by_crate,
            origin: format!("RustSec in {}", folder.display()),
        })
    }

    fn read_copy(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|why| why.to_string())?;
        let mut by_crate: HashMap<String, Vec<(String, String)>> = HashMap::new();
        let mut rest = text;
        while let Some(advisory) = read_front_matter(rest) {
            let (Some(id), Some(name)) =
                (read_text(advisory, "id"), read_text(advisory, "package"))
            else {
                return Err(format!("{COPY} has an advisory without an id or a crate"));
            };
            let known = by_crate.entry(name).or_default();
            known.push((id, advisory.to_owned()));
            let fence = rest.find("```toml").unwrap_or_default() + "```toml".len();
            rest = &rest[fence + advisory.len()..];
        }
        Ok(Self {
            by_crate,
            origin: format!("RustSec of {COPY_DATE}"),
        })
    }

    /// Compares the packages with the advisories.
    pub(crate) fn compare(&self, packages: &[(String, String)]) -> Found {
        let mut found = Found::default();
        for (name, version) in packages {
            for (id, advisory) in self.by_crate.get(name).into_iter().flatten() {
                found.compared += 1;
                if advisory.contains("\nwithdrawn = ") || is_safe(advisory, parse_version(version))
                {
                    continue;
                }
                let told = format!("{name} {version}: {id}");
                if advisory.contains("\ninformational = ") {
                    found.notes.push(told);
                } else {
                    found.vulnerable.push(told);
                }
            }
        }
        found
    }
}

/// The value of `key = "…"`.
fn read_text(toml: &str, key: &str) -> Option<String> {
    let (_, rest) = toml.split_once(&format!("\n{key} = \""))?;
    Some(rest.split('"').next()?.to_owned())
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

const ADVISORY: &str = "x\n```toml\n[advisory]\nid = \"R\"\n\n[versions]\npatched = [\">= 1.2.3, < 2\", \"^0.9.4\"]\nunaffected = [\n  \"< 0.5\",\n]\n```\n";

/// A failed assertion is a problem of the campaign itself: the comparison is wrong, or the copy cannot be read.
pub(crate) fn check_matching(campaign: &Campaign) {
    let copy = Database::read_copy(&corpora::unpack(campaign, COPY)[COPY_MEMBER]);
    let copy = copy.expect("the copy in the repository");
    let old = |name: &str, version: &str| vec![(name.to_owned(), version.to_owned())];
    // Versions with well-known advisories.
    for (name, version, id) in [
        ("time", "0.1.42", "RUSTSEC-2020-0071"),
        ("tracing-subscriber", "0.3.19", "RUSTSEC-2025-0055"),
        ("idna", "0.5.0", "RUSTSEC-2024-0421"),
    ] {
        let found = copy.compare(&old(name, version)).vulnerable;
        assert!(found.iter().any(|told| told.ends_with(id)), "{found:?}");
    }
    assert_eq!(copy.compare(&old("idna", "1.0.0")).vulnerable.len(), 0);
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
