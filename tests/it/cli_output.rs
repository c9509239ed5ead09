//! What the built program prints for people and for CI servers.

use crate::cli::{Bench, rows, text};

const JUDGED: &str = "  - {id: brief, type: llm_judge, params: {criteria: \"The answer has at most 1 sentence.\"}}\n";
const RULES: &str = "judge: quick\njudges: {quick: {provider: rules}}\n";

#[test]
fn judge_is_reported_by_name_and_each_problem_once() {
    let bench = Bench::new();
    bench.workspace(RULES, JUDGED);
    let run = bench.dicta(&["run"]);
    let told = text(&run.stderr);
    for name in ["one/r/brief~quick", "two/r/brief~quick"] {
        let heading = format!("▸ {name}\n");
        let (_, block) = told.split_once(&heading).expect("a heading");
        let block: Vec<&str> = block.lines().take_while(|l| l.starts_with("  ")).collect();
        assert!(block.len() >= 4, "{told}");
        let said: Vec<&str> = block
            .iter()
            .map(|line| {
                line.trim_start()
                    .split_once(' ')
                    .map_or("", |(_, said)| said)
            })
            .collect();
        let mut once = said.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), said.len(), "{told}");
        assert!(
            block.last().expect("a last line").contains("pass 1.00"),
            "{told}"
        );
    }
}

#[test]
fn junit_counts_a_vote_as_one_test_case() {
    let bench = Bench::new();
    bench.workspace(RULES, JUDGED);
    let run = bench.dicta(&["run", "-q", "--repeat", "3", "--format", "junit"]);
    let xml = text(&run.stdout);
    assert_eq!(xml.matches("<testcase ").count(), 2, "{xml}");
    assert!(xml.contains(r#"name="one/r/brief""#), "{xml}");
    let shown = bench.dicta(&["show", "@", "--format", "jsonl"]);
    let cells = rows(&shown)
        .iter()
        .filter(|r| r["type"] == "result")
        .count();
    assert_eq!(cells, 4, "two repeats each, which agreed");
}

#[test]
fn check_reports_duplicate_ids_and_counts_in_words() {
    let bench = Bench::new();
    bench.workspace(RULES, JUDGED);
    bench.write(
        "t.jsonl",
        &r#"{"id":"one","messages":[]}
"#
        .repeat(2),
    );
    let check = bench.dicta(&["check"]);
    assert_eq!(check.status.code(), Some(0));
    let told = text(&check.stderr);
    assert!(
        told.contains("an earlier transcript has the id `one`"),
        "{told}"
    );
    let said = text(&check.stdout);
    assert!(
        said.contains("1 rubric with 1 eval, 2 transcripts in 1 file, 2 judges, 0 labels"),
        "{said}"
    );
    assert!(said.contains("no errors, 1 warning\n"), "{said}");
}

#[test]
fn syntax_error_shows_its_line() {
    let bench = Bench::new();
    bench.workspace(RULES, JUDGED);
    bench.write("r.yaml", "id: r\nevals:\n  - id: a\n   type: regex\n");
    let check = bench.dicta(&["check"]);
    assert_eq!(check.status.code(), Some(2));
    let told = text(&check.stderr);
    assert!(
        told.contains("r.yaml:4:4") && told.contains("4 │    type: regex"),
        "{told}"
    );
}

#[test]
fn manual_page_lists_every_command_with_its_flags() {
    let bench = Bench::new();
    let page = text(&bench.dicta(&["man"]).stdout);
    assert_eq!(page.matches(".TH ").count(), 1, "one page");
    for part in [
        "\"DICTA RUN\"",
        "\"DICTA COMPARE\"",
        "\\-\\-resume",
        "\\-\\-speed",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn themes_command_lists_themes_and_prints_their_files() {
    let bench = Bench::new();
    let listed = text(&bench.dicta(&["themes"]).stdout);
    for name in ["dark", "light", "high-contrast", "colour-blind", "ansi"] {
        assert!(
            listed.lines().any(|line| line.starts_with(name)),
            "{listed}"
        );
        let printed = text(&bench.dicta(&["themes", name]).stdout);
        assert!(printed.starts_with("about: "), "{printed}");
    }
    let wrong = bench.dicta(&["themes", "drak"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(
        text(&wrong.stderr),
        "dicta: unknown theme `drak`; did you mean `dark`?\n"
    );
}
