use super::*;

#[test]
fn every_key_of_table_parses_and_prints_back() {
    for spec in COMMANDS {
        for keys in spec.keys {
            let read = parse_chords(keys).unwrap_or_else(|why| panic!("{}: {why}", spec.id));
            let printed: Vec<String> = read.iter().map(KeyChord::to_string).collect();
            assert_eq!(printed.join(" "), *keys, "{}", spec.id);
        }
    }
}

#[test]
fn narrow_scope_has_priority_over_global() {
    let resolve = |scopes: &[CommandScope], keys: &str| {
        resolve_keys(scopes.iter().copied(), &parse_chords(keys).expect("keys"))
    };
    let cells = [CommandScope::Cells, CommandScope::Global];
    assert_eq!(resolve(&cells, "o"), KeyMeaning::Command(UiCommand::Sort));
    assert_eq!(resolve(&cells, "q"), KeyMeaning::Command(UiCommand::Quit));
    assert_eq!(resolve(&[CommandScope::Global], "o"), KeyMeaning::Nothing);
    assert_eq!(resolve(&cells, "y"), KeyMeaning::Prefix);
    assert_eq!(
        resolve(&cells, "y n"),
        KeyMeaning::Command(UiCommand::CopyName)
    );
    assert_eq!(resolve(&cells, "y z"), KeyMeaning::Nothing);
    assert_eq!(resolve(&cells, "g"), KeyMeaning::Command(UiCommand::Top));
    let rest = following_keys(
        [CommandScope::Global].into_iter(),
        &parse_chords("y").expect("keys"),
    );
    assert_eq!(rest.len(), 5);
    assert_eq!(rest[0].keys, "v");
}
