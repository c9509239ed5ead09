use super::*;

#[test]
fn every_key_of_the_table_is_read_and_printed_back() {
    for spec in COMMANDS {
        for keys in spec.keys {
            let read = parse_chords(keys).unwrap_or_else(|why| panic!("{}: {why}", spec.id));
            let printed: Vec<String> = read.iter().map(KeyChord::to_string).collect();
            assert_eq!(printed.join(" "), *keys, "{}", spec.id);
        }
    }
}

#[test]
fn nearer_scopes_are_asked_first_and_the_rest_falls_through() {
    let of = |scopes: &[CommandScope], keys: &str| {
        resolve_keys(scopes.iter().copied(), &parse_chords(keys).expect("keys"))
    };
    let cells = [CommandScope::Cells, CommandScope::Global];
    assert_eq!(of(&cells, "o"), KeyMeaning::Command(UiCommand::Sort));
    assert_eq!(of(&cells, "q"), KeyMeaning::Command(UiCommand::Quit));
    assert_eq!(of(&[CommandScope::Global], "o"), KeyMeaning::Nothing);
    assert_eq!(of(&cells, "y"), KeyMeaning::Prefix);
    assert_eq!(of(&cells, "y n"), KeyMeaning::Command(UiCommand::CopyName));
    assert_eq!(of(&cells, "y z"), KeyMeaning::Nothing);
    assert_eq!(of(&cells, "g"), KeyMeaning::Command(UiCommand::Top));
    let rest = following_keys(
        [CommandScope::Global].into_iter(),
        &parse_chords("y").expect("keys"),
    );
    assert_eq!(rest.len(), 4);
    assert_eq!(rest[0].0, "v");
}
