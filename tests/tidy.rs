//! Checks the rules of CONTRIBUTING.md about modules, outside crates, the length of a file, and words. Also checks that
//! the commands of README and docs do what the pages show.
//!
//! Reads the sources as text, without parsing Rust: it blanks comments and string literals first. It does not see a path
//! that a macro builds.

#[path = "tidy/console.rs"]
mod console;
#[path = "tidy/cycles.rs"]
mod cycles;
#[path = "tidy/demo.rs"]
mod demo;
#[path = "tidy/language.rs"]
mod language;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/readme.rs"]
mod readme;
#[path = "tidy/sockets.rs"]
mod sockets;
#[path = "tidy/source.rs"]
mod source;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use layers::LAYERS;
use source::{Source, blank, blank_tests, ends_in_word, is_word, line_of, root, sources, word};

/// The one home of an outside crate: files under `src` whose path begins with one of these.
const HOMES: &[(&str, &[&str])] = &[
    ("reqwest", &["net"]),
    ("hyper_rustls", &["net"]),
    ("hyper_util", &["net"]),
    ("jsonschema", &["schema"]),
    ("jsonwebtoken", &["tools"]),
    ("rmcp", &["tools"]),
    ("rusqlite", &["tools", "transcript/formats/databases"]),
    ("tokio_postgres", &["tools", "net"]),
    ("tokio_postgres_rustls", &["tools", "net"]),
    ("jmespath", &["query"]),
    ("serde_saphyr", &["diag/yaml"]),
    ("serde_yaml", &["diag/yaml"]),
    ("annotate_snippets", &["diag"]),
    ("directories", &["workspace/paths"]),
    ("html5ever", &["tools"]),
    ("minijinja", &["rubric/template"]),
    ("ratatui", &["tui", "theme"]),
    ("crossterm", &["tui"]),
    ("syntect", &["theme/code"]),
    ("notify", &["workspace/watch"]),
    ("statrs", &["compare/statistics/distributions"]),
    ("include_dir", &["workspace/demo"]),
    ("zip", &["transcript", "tui/tests"]),
    ("crc32fast", &["record"]),
    ("clap", &["cli", "main"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
];

/// A text that a file may not contain. It is written in two halves, so that the check does not find itself.
struct Ban {
    text: [&'static str; 2],
    /// Only in files whose path begins so.
    under: &'static str,
    /// But not in those whose path holds one of these.
    except: &'static [&'static str],
    why: &'static str,
}

const BANNED: &[Ban] = &[
    ban(["todo", "!("], "", &[], UNFINISHED),
    ban(["unimplemented", "!("], "", &[], UNFINISHED),
    ban(
        ["#[ign", "ore"],
        "",
        &[],
        "a test that does not run guards nothing",
    ),
    ban(
        ["allow(dead", "_code)"],
        "",
        &[],
        "delete it, or let the compiler say it",
    ),
    ban(
        ["thread::sl", "eep("],
        "",
        // A bench of idleness waits on purpose.
        &["src/clock", "benches/screen"],
        "wait for a state, or use the fake clock",
    ),
    // The wire server paces recorded samples, no test asks it to; a bench's server takes its time on purpose.
    ban(
        ["tokio::ti", "me::"],
        "",
        &["src/clock", "tests/it/support/wire", "benches/"],
        CLOCK,
    ),
    // Tests of a time budget look at the clock on the wall.
    ban(
        ["Instant::n", "ow("],
        "src/",
        &["src/clock", "tests.rs", "/tests/"],
        CLOCK,
    ),
    ban(
        ["SystemTime::n", "ow("],
        "src/",
        &["src/clock", "tests.rs", "/tests/"],
        CLOCK,
    ),
];
const UNFINISHED: &str = "unfinished code is not merged";
const CLOCK: &str = "time goes through Clock";

const fn ban(
    text: [&'static str; 2],
    under: &'static str,
    except: &'static [&'static str],
    why: &'static str,
) -> Ban {
    Ban {
        text,
        under,
        except,
        why,
    }
}
/// The most lines of code in a file. Inline tests, comments and blank lines do not count.
const MAX_CODE_LINES: usize = 600;

fn count_code_lines(code: &str) -> usize {
    let code = blank_tests(code);
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Returns true if a file contains only tests or their helpers.
fn is_test_path(path: &str) -> bool {
    const FOLDERS: &[&str] = &["/tests/"];
    const FILES: &[&str] = &[
        "tests.rs",
        "tests_support.rs",
        "testing.rs",
        "fake.rs",
        "laws.rs",
    ];
    !path.starts_with("src/")
        || FOLDERS.iter().any(|folder| path.contains(folder))
        || FILES.iter().any(|file| path.ends_with(file))
}

/// The module a file belongs to: the name below `src`.
fn module(path: &str) -> Option<&str> {
    let below = path.strip_prefix("src/")?;
    let name = below.split('/').next()?;
    Some(name.strip_suffix(".rs").unwrap_or(name)).filter(|m| *m != "lib")
}

/// The modules to which paths of this prefix lead, with their places: `crate::x`, `crate::{x, y::{z}}`.
fn imports<'c>(code: &'c str, prefix: &str) -> Vec<(usize, &'c str)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        if ends_in_word(&code[..at]) || code[..at].ends_with("::") {
            continue;
        }
        let after = &code[at + prefix.len()..];
        let Some(group) = after.trim_start().strip_prefix('{') else {
            found.push((at, word(after)));
            continue;
        };
        let (mut depth, mut fresh) = (1, true);
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => break,
                '}' => depth -= 1,
                ',' if depth == 1 => fresh = true,
                c if depth == 1 && fresh && is_word(c) => {
                    fresh = false;
                    found.push((at, word(&group[i..])));
                }
                _ => {}
            }
        }
    }
    found
}

/// The number of `super::` that lead from the top of this file to the crate's root.
fn supers_to_root(path: &str) -> usize {
    let below = path.strip_prefix("src/").unwrap_or(path);
    let depth = below.split('/').count();
    if below.ends_with("/mod.rs") {
        depth - 1
    } else {
        depth
    }
}

fn fail_with(problems: &[String], rule: &str) {
    let mut all = String::new();
    for problem in problems {
        let _ = write!(all, "\n  {problem}");
    }
    assert!(problems.is_empty(), "{rule}:{all}\n");
}

fn layer_problems(source: &Source) -> Vec<String> {
    let Some(module) = module(&source.path) else {
        return Vec::new();
    };
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == module) else {
        return vec![format!(
            "{} is in `{module}`, which has no row in LAYERS (tests/tidy.rs)",
            source.path
        )];
    };
    let mut found = imports(
        &source.code,
        if module == "main" {
            "dicta::"
        } else {
            "crate::"
        },
    );
    // A path up through `super` to the root is the same import in other words; a child of that name is not.
    let up = "super::".repeat(supers_to_root(&source.path));
    found.extend(
        imports(&source.code, &up)
            .into_iter()
            .filter(|(_, name)| !source.code.contains(&format!("mod {name}"))),
    );
    let mut problems = BTreeSet::new();
    for (at, name) in found {
        let ours = LAYERS.iter().any(|(module, _)| *module == name);
        if ours && name != module && !allowed.contains(&name) {
            let line = line_of(&source.code, at);
            problems.insert(format!(
                "{}:{line} imports {name}: {module} may not",
                source.path
            ));
        }
    }
    problems.into_iter().collect()
}

fn home_problems(source: &Source) -> Vec<String> {
    let Some(below) = source.path.strip_prefix("src/") else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    for (outside, homes) in HOMES {
        if homes.iter().any(|home| below.starts_with(home)) {
            continue;
        }
        let path = format!("{outside}::");
        for (at, _) in source.code.match_indices(&path) {
            if !ends_in_word(&source.code[..at]) {
                let line = line_of(&source.code, at);
                let homes = homes.join(" or ");
                problems.push(format!(
                    "{}:{line} uses {outside}, whose home is src/{homes}",
                    source.path
                ));
            }
        }
    }
    problems
}

fn banned_problems(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    for ban in BANNED {
        let excepted = ban.except.iter().any(|part| source.path.contains(part));
        if excepted || !source.path.starts_with(ban.under) {
            continue;
        }
        let text = ban.text.concat();
        for (at, _) in source.code.match_indices(&text) {
            if !ends_in_word(&source.code[..at]) {
                let line = line_of(&source.code, at);
                problems.push(format!("{}:{line} has `{text}`: {}", source.path, ban.why));
            }
        }
    }
    problems
}

/// Calls that write, replace or create a file or folder: only `storage` has them, because it keeps old files until new
/// ones are complete.
const FILE_WRITES: &[&str] = &[
    "File::create(",
    "File::create_new(",
    "fs::write(",
    "fs::copy(",
    ".persist(",
    ".persist_noclobber(",
    ".create_new(true)",
    "DirBuilder::new(",
];
/// A recording has a disk of its own, so that tests can make its calls fail. The last file contains only helpers of tests.
const FILE_WRITERS: &[&str] = &[
    "src/storage/",
    "src/record/disk.rs",
    "src/transcript/formats/read_back.rs",
];

fn file_write_problems(source: &Source) -> Vec<String> {
    let is_writer = FILE_WRITERS
        .iter()
        .any(|path| source.path.starts_with(path));
    if is_writer || is_test_path(&source.path) {
        return Vec::new();
    }
    let code = blank_tests(&source.code);
    let mut problems = Vec::new();
    for text in FILE_WRITES {
        for (at, _) in code.match_indices(text) {
            if !ends_in_word(&code[..at]) {
                let line = line_of(&code, at);
                problems.push(format!("{}:{line} has `{text}`", source.path));
            }
        }
    }
    problems
}

#[test]
fn only_the_storage_module_writes_files() {
    let problems: Vec<String> = sources().iter().flat_map(file_write_problems).collect();
    fail_with(&problems, "files are written with `crate::storage`");
}

/// The functions that read a whole file of any kind and size.
const FILE_READS: &[&str] = &["fs::read(", "fs::read_to_string("];
/// The last file contains only helpers of tests.
const FILE_READERS: &[&str] = &["src/storage/", "src/transcript/formats/read_back.rs"];

fn file_read_problems(source: &Source) -> Vec<String> {
    let is_reader = FILE_READERS
        .iter()
        .any(|path| source.path.starts_with(path));
    if is_reader || !source.path.starts_with("src/") || is_test_path(&source.path) {
        return Vec::new();
    }
    let code = blank_tests(&source.code);
    let mut problems = Vec::new();
    for text in FILE_READS {
        for (at, _) in code.match_indices(text) {
            let line = line_of(&code, at);
            problems.push(format!("{}:{line} has `{text}`", source.path));
        }
    }
    problems
}

#[test]
fn whole_files_are_read_with_a_limit_and_without_a_wait_for_a_pipe() {
    let problems: Vec<String> = sources().iter().flat_map(file_read_problems).collect();
    fail_with(
        &problems,
        "a whole file is read with `storage::read_regular_file`",
    );
    let unlimited = source("src/review/files.rs", "let text = fs::read(&path)?;\n");
    assert_eq!(
        file_read_problems(&unlimited),
        ["src/review/files.rs:1 has `fs::read(`"]
    );
}

/// The functions for files of secrets. A file with a keyed checksum needs neither their checks nor their wait for the disk.
const SECRET_FILE_CALLS: &[&str] = &[
    "read_private_file(",
    "create_private_file(",
    "replace_private_file(",
];

/// Returns the calls for secrets in a file that reads or writes a file with a keyed checksum.
fn signed_file_problems(source: &Source) -> Vec<String> {
    let code = blank_tests(&source.code);
    if source.path.starts_with("src/storage/") || !code.contains("_signed_file(") {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for text in SECRET_FILE_CALLS {
        for (at, _) in code.match_indices(text) {
            let line = line_of(&code, at);
            problems.push(format!("{}:{line} has `{text}`", source.path));
        }
    }
    problems
}

#[test]
fn files_with_a_checksum_are_read_and_written_in_one_way() {
    let problems: Vec<String> = sources().iter().flat_map(signed_file_problems).collect();
    fail_with(
        &problems,
        "a file with a keyed checksum uses `read_signed_file` and `replace_signed_file`",
    );
    let mixed = source(
        "src/record/cache_file.rs",
        "read_signed_file(&path, 1);\nstorage::replace_private_file(&path, b\"\");\n",
    );
    assert_eq!(
        signed_file_problems(&mixed),
        ["src/record/cache_file.rs:2 has `replace_private_file(`"]
    );
}

#[test]
fn modules_import_only_from_lower_layers() {
    let problems: Vec<String> = sources().iter().flat_map(layer_problems).collect();
    fail_with(&problems, "the layers of src/lib.rs");
}

#[test]
fn every_module_of_the_library_has_a_layer() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs is there");
    let problems: Vec<String> = lib
        .lines()
        .filter_map(|line| {
            line.trim_start_matches("pub ")
                .strip_prefix("mod ")?
                .strip_suffix(';')
        })
        .filter(|name| !LAYERS.iter().any(|(module, _)| module == name))
        .map(|name| format!("`{name}` has no row in LAYERS (tests/tidy.rs)"))
        .collect();
    fail_with(&problems, "modules without a layer");
}

#[test]
fn the_layers_have_no_cycle() {
    for (at, (module, allowed)) in LAYERS.iter().enumerate() {
        for below in *allowed {
            let its = LAYERS.iter().position(|(name, _)| name == below);
            assert!(
                its.is_some_and(|its| its < at),
                "{module} may import {below}, which is not below it"
            );
        }
    }
}

/// Modules that a part of the screen may not name, by the part's folder.
const SCREEN_RULES: &[(&str, &[&str])] = &[
    // A widget draws texts, rows and styles. `model` is allowed only for `ALLOWED_IN_WIDGETS`.
    (
        "src/tui/widget/",
        &[
            "crate::cli",
            "crate::compare",
            "crate::event",
            "crate::handlers",
            "crate::judge",
            "crate::model",
            "crate::provider",
            "crate::record",
            "crate::report",
            "crate::rubric",
            "crate::run",
            "crate::tools",
            "crate::transcript",
            "crate::tui::command",
            "crate::tui::content",
            "crate::tui::effect",
            "crate::tui::msg",
            "crate::tui::state",
            "crate::tui::update",
            "crate::tui::view",
            "crate::workspace",
        ],
    ),
    // A view draws the state of the screen. Judges and providers act; a view does not.
    ("src/tui/view/", &["crate::judge", "crate::provider"]),
];

/// Functions that make untrusted text visible; they know no domain type.
const ALLOWED_IN_WIDGETS: &[&str] = &[
    "crate::model::is_invisible",
    "crate::model::make_visible",
    "crate::model::visible",
];

fn screen_problems(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    for (folder, forbidden) in SCREEN_RULES {
        if !source.path.starts_with(folder) || is_test_path(&source.path) {
            continue;
        }
        let code = blank_tests(&source.code);
        // A path up through `super` names the same module in other words.
        let depth = source.path[folder.len()..].matches('/').count() + 1;
        let code = code.replace(&"super::".repeat(depth + 1), "crate::tui::");
        for module in *forbidden {
            for (at, _) in code.match_indices(module) {
                let after = &code[at + module.len()..];
                let allowed = ALLOWED_IN_WIDGETS
                    .iter()
                    .any(|allowed| code[at..].starts_with(allowed));
                if !after.starts_with(is_word) && !allowed {
                    let line = line_of(&code, at);
                    problems.push(format!("{}:{line} names {module}", source.path));
                }
            }
        }
    }
    problems
}

#[test]
fn widgets_know_no_domain_type_and_views_know_no_judge() {
    let problems: Vec<String> = sources().iter().flat_map(screen_problems).collect();
    fail_with(&problems, "parts of the screen that know too much");
}

#[test]
fn screen_check_finds_a_forbidden_import() {
    let widget = |text| screen_problems(&source("src/tui/widget/list.rs", text));
    assert_eq!(
        widget("use crate::model::Verdict;"),
        ["src/tui/widget/list.rs:1 names crate::model"]
    );
    assert_eq!(
        widget("use super::super::state::App;"),
        ["src/tui/widget/list.rs:1 names crate::tui::state"]
    );
    assert_eq!(
        widget("use crate::model::make_visible;\nuse super::canvas::Canvas;"),
        Vec::<String>::new()
    );
    let view = |text| screen_problems(&source("src/tui/view/cells.rs", text));
    assert_eq!(
        view("fn f() -> crate::judge::Gate { g() }"),
        ["src/tui/view/cells.rs:1 names crate::judge"]
    );
    assert_eq!(view("use crate::model::Verdict;"), Vec::<String>::new());
}

#[test]
fn outside_crates_stay_in_their_home() {
    let problems: Vec<String> = sources().iter().flat_map(home_problems).collect();
    fail_with(&problems, "one home for each outside crate");
}

#[test]
fn no_file_is_too_long() {
    let problems: Vec<String> = sources()
        .iter()
        .map(|source| (&source.path, count_code_lines(&source.code)))
        .filter(|(_, lines)| *lines > MAX_CODE_LINES)
        .map(|(path, lines)| {
            format!(
                "{path} has {lines} lines of code, at most {MAX_CODE_LINES}: split it by subject"
            )
        })
        .collect();
    fail_with(&problems, "long files");
}

#[test]
fn sources_have_no_unfinished_code_and_no_real_time() {
    let problems: Vec<String> = sources().iter().flat_map(banned_problems).collect();
    fail_with(&problems, "words that must not stand in the code");
}

// ---- tidy catches what it is for ----

fn source(path: &str, text: &str) -> Source {
    Source {
        path: path.to_owned(),
        text: text.to_owned(),
        code: blank(text),
    }
}

#[test]
fn an_import_from_above_is_found_however_it_is_spelled() {
    let spellings = [
        "use crate::judge::Gate;",
        "use crate::{model::Cell, judge::{Gate, Stop}};",
        "use crate::{\n    event::Kind,\n    judge,\n};",
        "fn f() -> crate::judge::Gate { g() }",
        "use super::super::judge::Gate;",
    ];
    for spelling in spellings {
        let found = layer_problems(&source("src/tools/fetch.rs", spelling));
        assert_eq!(
            found,
            ["src/tools/fetch.rs:1 imports judge: tools may not"],
            "{spelling}"
        );
    }
}

#[test]
fn comments_literals_and_children_are_no_imports() {
    let harmless = [
        "//! See [`crate::judge::Gate`].\nuse crate::model::Cell;",
        "const S: &str = \"crate::judge::Gate\";",
        "const S: &str = r#\"use \"crate::judge\" here\"#;",
        "/* crate::judge */ use crate::event::{Kind, Emitter};",
        "const Q: char = '\"'; // crate::judge\n",
        "mod judge; use super::judge::x;",
        "use super::fetch::Fetch;",
    ];
    for text in harmless {
        assert_eq!(
            layer_problems(&source("src/tools/mod.rs", text)),
            Vec::<String>::new(),
            "{text}"
        );
    }
}

#[test]
fn a_crate_away_from_home_is_found_and_at_home_is_not() {
    let text = "use reqwest::Client;";
    assert_eq!(
        home_problems(&source("src/net/client.rs", text)),
        Vec::<String>::new()
    );
    assert_eq!(
        home_problems(&source("src/tools/fetch.rs", text)),
        ["src/tools/fetch.rs:1 uses reqwest, whose home is src/net"]
    );
}

#[test]
fn unfinished_code_and_real_sleeps_are_found() {
    for ban in BANNED {
        let text = ban.text.concat();
        let path = format!(
            "{}x.rs",
            if ban.under.is_empty() {
                "tests/"
            } else {
                ban.under
            }
        );
        let found = banned_problems(&source(&path, &format!("fn f() {{\n    {text}\n}}")));
        assert_eq!(found, [format!("{path}:2 has `{text}`: {}", ban.why)]);
    }
}
