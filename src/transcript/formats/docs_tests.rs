//! Checks that `catalog.rs` and `docs/reference/transcript-formats.md` describe every format, in the order of detection.
//! Also checks the names in lists of formats.

use super::catalog::DESCRIPTIONS;
use super::{
    BINARY_FORMATS, FORMATS_OF_SEVERAL_FILES, GENERIC_FORMATS, TEXT_FORMATS,
    TRACES_WITHOUT_MESSAGES,
};

const DOCS: &str = include_str!("../../../docs/reference/transcript-formats.md");

#[test]
fn docs_name_every_format() {
    let magic = BINARY_FORMATS
        .iter()
        .map(|one| (one.name, one.create_reader.is_some()));
    let text = TEXT_FORMATS
        .iter()
        .map(|one| (one.name, one.create_reader.is_some()));
    let (read, named): (Vec<_>, Vec<_>) = magic.chain(text).partition(|(_, read)| *read);
    let section = DOCS
        .split("\n## What is read\n")
        .nth(1)
        .expect("its section");
    let section = section.split("\n## ").next().expect("its end");
    let documented = DESCRIPTIONS.iter().copied().flatten();
    let documented: Vec<&str> = documented.map(|format| format.name).collect();
    let known: Vec<&str> = read.into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        documented, known,
        "`catalog.rs`, from which the table of docs/reference/transcript-formats.md is generated"
    );
    let (_, list) = section
        .split_once("but does not read them:\n\n")
        .expect("the list");
    let documented: Vec<&str> = list
        .lines()
        .map_while(|line| line.strip_prefix("- "))
        .collect();
    let known: Vec<&str> = named.into_iter().map(|(name, _)| name).collect();
    assert_eq!(documented, known, "those that are not read");
}

#[test]
fn lists_of_formats_name_formats_of_the_tables() {
    let binary = BINARY_FORMATS.iter().map(|one| one.name);
    let text = TEXT_FORMATS.iter().map(|one| one.name);
    let known: Vec<&str> = binary.chain(text).collect();
    let lists = FORMATS_OF_SEVERAL_FILES.iter().chain(&GENERIC_FORMATS);
    for name in lists.chain(&TRACES_WITHOUT_MESSAGES) {
        assert!(known.contains(name), "{name}");
    }
}
