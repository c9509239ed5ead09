use super::*;

fn sent(code: KeyCode, modifiers: KeyModifiers) -> String {
    Chord::of(KeyEvent::new(code, modifiers)).to_string()
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
        let read: Chord = text.parse().expect("a key");
        assert_eq!(read.to_string(), text);
    }
}

#[test]
fn every_key_of_the_table_is_read_and_printed_back() {
    for spec in COMMANDS {
        for keys in spec.keys {
            let read = chords(keys).unwrap_or_else(|why| panic!("{}: {why}", spec.id));
            let printed: Vec<String> = read.iter().map(Chord::to_string).collect();
            assert_eq!(printed.join(" "), *keys, "{}", spec.id);
        }
    }
}

#[test]
fn nearer_scopes_are_asked_first_and_the_rest_falls_through() {
    let of = |scopes: &[Scope], keys: &str| {
        resolve(scopes.iter().copied(), &chords(keys).expect("keys"))
    };
    let cells = [Scope::Cells, Scope::Global];
    assert_eq!(of(&cells, "o"), Meaning::Command(Command::Sort));
    assert_eq!(of(&cells, "q"), Meaning::Command(Command::Quit));
    assert_eq!(of(&[Scope::Global], "o"), Meaning::Nothing);
    assert_eq!(of(&cells, "y"), Meaning::Begun);
    assert_eq!(of(&cells, "y n"), Meaning::Command(Command::CopyName));
    assert_eq!(of(&cells, "y z"), Meaning::Nothing);
    assert_eq!(of(&cells, "g"), Meaning::Command(Command::Top));
    let rest = following([Scope::Global].into_iter(), &chords("y").expect("keys"));
    assert_eq!(rest.len(), 4);
    assert_eq!(rest[0].0, "v");
}
