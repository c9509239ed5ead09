//! The completion of the shell, as bash calls it.

use crate::cli::{TestDir, text};

#[test]
fn bash_completes_a_value_after_an_equals_sign_and_the_last_of_several_terms() {
    let test_dir = TestDir::new();
    test_dir.write("t.jsonl", "{\"id\":\"one\",\"messages\":[]}\n");
    test_dir.workspace(
        "judge: rules\n",
        "  - { id: greets, type: contains, params: { patterns: [Hi] } }\n",
    );
    let completions = test_dir.dicta(&["completions", "bash"]);
    // The script runs `dicta` from the path. The line, the word that bash completes, and the word before it.
    let script = format!(
        "dicta() {{ '{}' \"$@\"; }}\n{}\ncomplete_line() {{ COMP_LINE=$1 COMP_POINT=${{#1}}; \
         _dicta_words dicta \"$2\" \"$3\"; echo \"${{COMPREPLY[*]}}\"; }}\n\
         complete_line 'dicta run --where label:dis' dis :\n\
         complete_line 'dicta run --where=label:dis' dis :\n\
         complete_line \"dicta run --where 'eval:greets label:dis\" 'eval:greets label:dis' --where\n",
        env!("CARGO_BIN_EXE_dicta"),
        text(&completions.stdout)
    );
    let file = test_dir.write("complete.sh", &script);
    let output = std::process::Command::new("bash")
        .arg(&file)
        .current_dir(test_dir.path())
        .env("DICTA_DATA_DIR", test_dir.path().join(".data"))
        .output();
    // Not every machine has bash.
    let Ok(output) = output else {
        return;
    };
    let lines = text(&output.stdout);
    assert_eq!(
        lines.lines().collect::<Vec<_>>(),
        ["disagrees", "disagrees", "eval:greets label:disagrees"],
        "{}",
        text(&output.stderr)
    );
}
