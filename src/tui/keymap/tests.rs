use super::*;

fn sent(code: KeyCode, modifiers: KeyModifiers) -> String {
    KeyChord::from_event(KeyEvent::new(code, modifiers)).to_string()
}

#[test]
fn terminals_differ_and_keys_do_not() {
    let (none, shift, ctrl) = (
        KeyModifiers::NONE,
        KeyModifiers::SHIFT,
        KeyModifiers::CONTROL,
    );
    let cases = [
        (KeyCode::Char('R'), none, "R"),
        (KeyCode::Char('R'), shift, "R"),
        (KeyCode::Char('r'), shift, "R"),
        (KeyCode::Char('?'), shift, "?"),
        (KeyCode::BackTab, none, "shift-tab"),
        (KeyCode::BackTab, shift, "shift-tab"),
        (KeyCode::Tab, shift, "shift-tab"),
        (KeyCode::Char('i'), ctrl, "tab"),
        (KeyCode::Char('j'), ctrl, "enter"),
        (KeyCode::Char('m'), ctrl, "enter"),
        (KeyCode::Char('h'), ctrl, "backspace"),
        (KeyCode::Char('C'), ctrl | shift, "ctrl-c"),
        (KeyCode::Char(' '), none, "space"),
        (KeyCode::Left, ctrl, "ctrl-left"),
        (KeyCode::F(5), none, "f5"),
    ];
    for (code, modifiers, text) in cases {
        assert_eq!(sent(code, modifiers), text);
        let read: KeyChord = text.parse().expect("a key");
        assert_eq!(read.to_string(), text);
    }
}

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
