//! Checks that files which are siblings do not import each other in a cycle.
//!
//! An edge leads from a file to a file that it names in a path. Edges between a module and its own children, and edges
//! to and from a `mod.rs`, are left out: a `mod.rs` re-exports what its children define.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::source::{Source, blank_tests, sources};
use crate::{fail_with, is_test_path};

type ModulePath = Vec<String>;

/// The module that a file defines: `src/run/plan.rs` is `[run, plan]`.
fn module_path(path: &str) -> Option<ModulePath> {
    let below = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let mut parts: ModulePath = below.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    Some(parts).filter(|parts| !matches!(parts.first().map(String::as_str), Some("lib" | "main")))
}

/// The paths of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expand(tree: &str, prefix: &[String], found: &mut Vec<Vec<String>>) {
    let segments = |text: &str| -> Vec<String> {
        let text = text.split(" as ").next().unwrap_or("");
        let parts = text.split("::").map(str::trim).filter(|s| !s.is_empty());
        parts.map(str::to_owned).collect()
    };
    let Some((before, group)) = tree.split_once('{') else {
        found.push([prefix, &segments(tree)].concat());
        return;
    };
    let prefix = [prefix, &segments(before)].concat();
    let group = group.rsplit_once('}').map_or(group, |(inside, _)| inside);
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&group[begin..at], &prefix, found);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if !group[begin..].trim().is_empty() {
        expand(&group[begin..], &prefix, found);
    }
}

/// The module that a path leads to from a module, as deep as there is one.
fn resolve(
    from: &ModulePath,
    path: &[String],
    modules: &BTreeSet<ModulePath>,
) -> Option<ModulePath> {
    let mut rest = path;
    let mut base = match rest.first()?.as_str() {
        "crate" => {
            rest = &rest[1..];
            Vec::new()
        }
        "self" => {
            rest = &rest[1..];
            from.clone()
        }
        "super" => {
            let mut base = from.clone();
            while rest.first().is_some_and(|s| s == "super") {
                base.pop()?;
                rest = &rest[1..];
            }
            base
        }
        child => {
            let path = [from.as_slice(), &[child.to_owned()]].concat();
            modules.contains(&path).then(|| from.clone())?
        }
    };
    for segment in rest {
        base.push(segment.clone());
        if !modules.contains(&base) {
            base.pop();
            break;
        }
    }
    modules.contains(&base).then_some(base)
}

fn is_ancestor(one: &ModulePath, other: &ModulePath) -> bool {
    other.starts_with(one)
}

/// The cycles among these files, each as the sorted names of its files.
fn cycles(files: &[Source]) -> Vec<Vec<String>> {
    let uses = Regex::new(r"(?m)^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);").expect("a pattern");
    let inline = Regex::new(r"\b(?:crate|super|self)(?:::\w+)+").expect("a pattern");
    let files: Vec<(ModulePath, &Source)> = files
        .iter()
        .filter(|file| !is_test_path(&file.path))
        .filter_map(|file| Some((module_path(&file.path)?, file)))
        .collect();
    let modules: BTreeSet<ModulePath> = files.iter().map(|(module, _)| module.clone()).collect();
    let leaf: BTreeSet<&ModulePath> = files
        .iter()
        .filter(|(_, file)| !file.path.ends_with("/mod.rs"))
        .map(|(module, _)| module)
        .collect();
    let mut edges: BTreeMap<&ModulePath, BTreeSet<ModulePath>> = BTreeMap::new();
    for (module, file) in &files {
        if !leaf.contains(module) {
            continue;
        }
        let code = blank_tests(&file.code);
        let mut paths = Vec::new();
        for found in uses.captures_iter(&code) {
            expand(&found[1], &[], &mut paths);
        }
        for found in inline.find_iter(&code) {
            expand(found.as_str(), &[], &mut paths);
        }
        let targets = paths
            .iter()
            .filter_map(|path| resolve(module, path, &modules))
            .filter(|to| leaf.contains(to) && !is_ancestor(module, to) && !is_ancestor(to, module));
        edges.insert(module, targets.collect());
    }
    let reach = |from: &ModulePath| {
        let mut seen: BTreeSet<ModulePath> = BTreeSet::new();
        let mut open: Vec<&ModulePath> = vec![from];
        while let Some(module) = open.pop() {
            for to in edges.get(module).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&ModulePath, BTreeSet<ModulePath>> = edges
        .keys()
        .map(|module| (*module, reach(module)))
        .collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (module, to) in &reached {
        if to.contains(*module) {
            let circle = to.iter().filter(|other| reached[other].contains(*module));
            found.insert(circle.map(|m| m.join("/")).collect());
        }
    }
    found.into_iter().collect()
}

#[test]
fn sibling_files_have_no_import_cycles() {
    let problems: Vec<String> = cycles(&sources())
        .iter()
        .map(|files| files.join(" ↔ "))
        .collect();
    fail_with(&problems, "files that import each other in a cycle");
}

#[test]
fn cycle_check_finds_a_cycle_however_it_is_spelled() {
    let file = |path: &str, code: &str| Source {
        path: path.to_owned(),
        text: code.to_owned(),
        code: code.to_owned(),
    };
    let cycle = [
        file("src/run/mod.rs", "mod a; mod b; mod c; pub use a::A;"),
        file("src/run/a.rs", "use super::{mod_item, b::{B, C}};"),
        file("src/run/b.rs", "fn f() -> crate::run::c::C { g() }"),
        file("src/run/c.rs", "use super::a::A;"),
    ];
    assert_eq!(cycles(&cycle), [vec!["run/a", "run/b", "run/c"]]);
    let tree = [
        file("src/run/mod.rs", "mod a; mod b; pub use a::A;"),
        file("src/run/a.rs", "use super::b::B;"),
        file(
            "src/run/b.rs",
            "use super::A;\n#[cfg(test)]\nmod tests {\n    use super::super::a::A;\n}\n",
        ),
    ];
    assert_eq!(cycles(&tree), Vec::<Vec<String>>::new());
}
