use super::*;

fn sent(code: KeyCode, modifiers: KeyModifiers) -> String {
    KeyChord::from_event(KeyEvent::new(code, modifiers)).to_string()
}

#[test]
fn terminal_variants_parse_to_same_key() {
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
