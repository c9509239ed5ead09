//! The exit code of a shell command, from the text that a coding agent gives to its model.
//!
//! Some agents report success for each command that ran, whatever its exit code. Responsible for the texts of Gemini CLI
//! and Qwen Code, which have a line `Exit Code: 1` among their last lines, and of Copilot CLI, which end with
//! `<exited with exit code 1>`. Does not read files.

/// The tool of Gemini CLI and Qwen Code that runs commands.
pub(super) const SHELL_TOOL: &str = "run_shell_command";

/// The labels of the lines that may follow the code.
const LATER_LABELS: [&str; 3] = ["Signal:", "Background PIDs:", "Process Group PGID:"];

/// Returns true if a result of a tool of Gemini CLI or Qwen Code states an exit code other than 0.
pub(super) fn has_failed_command(tool: &str, result: &str) -> bool {
    if tool != SHELL_TOOL {
        return false;
    }
    let is_later = |line: &str| LATER_LABELS.iter().any(|label| line.starts_with(label));
    // Newer versions leave out the code 0. Then the line before the later ones is of the command, whatever it contains.
    let mut lines = result.trim_end().rsplit('\n').map(str::trim);
    lines
        .find(|line| !is_later(line))
        .and_then(|line| line.strip_prefix("Exit Code: "))
        .is_some_and(is_failure)
}

/// Returns true if a result ends with an exit code other than 0, as Copilot CLI writes it.
pub(super) fn ends_with_failure(result: &str) -> bool {
    let last = result.trim_end().rsplit('\n').next().unwrap_or_default();
    let code = last.trim().strip_prefix("<exited with exit code ");
    code.and_then(|code| code.strip_suffix('>'))
        .is_some_and(is_failure)
}

/// Returns true for a code other than 0. A command that is still running has a word in its place.
fn is_failure(code: &str) -> bool {
    code.trim().parse::<i64>().is_ok_and(|code| code != 0)
}

#[cfg(test)]
mod tests {
    use super::{ends_with_failure, has_failed_command};

    #[test]
    fn code_near_the_end_of_a_shell_result_states_a_failure() {
        let result = |code: &str| {
            format!(
                "Command: ls\nDirectory: (root)\nOutput: Exit Code: 7\nError: (none)\nExit Code: {code}\nSignal: 0\nBackground PIDs: (none)\nProcess Group PGID: 1"
            )
        };
        for (code, expected) in [("0", false), ("1", true), ("127", true), ("(none)", false)] {
            let failed = has_failed_command("run_shell_command", &result(code));
            assert_eq!(failed, expected, "{code}");
        }
        assert!(!has_failed_command("read_file", &result("1")));
        assert!(!has_failed_command("run_shell_command", ""));
        // The output of a command that succeeded may have such a line.
        let printed = "Output: Exit Code: 7\nExit Code: 7\nall 3 tests ran\nProcess Group PGID: 1";
        assert!(!has_failed_command("run_shell_command", printed));
    }

    #[test]
    fn code_in_the_last_line_states_a_failure() {
        for (text, expected) in [
            ("a.txt\n<exited with exit code 0>", false),
            ("no such file\n<exited with exit code 2>\n", true),
            ("<exited with exit code 1>\nmore", false),
            ("<exited with exit code ?>", false),
            ("", false),
        ] {
            assert_eq!(ends_with_failure(text), expected, "{text:?}");
        }
    }
}
