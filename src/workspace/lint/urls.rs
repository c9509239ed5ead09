//! `unreachable-url`: criteria or a scoring guide with an address, for a judge that cannot open addresses.

use std::sync::LazyLock;

use regex::Regex;

use super::{LintMessage, LintedEval, RubricLints, for_each_text};
use crate::model::{JudgeConfig, ProviderKind};

/// The tool that opens addresses.
const FETCH_TOOL: &str = "fetch_url";

/// Matches addresses, and hosts under endings that are rarely file endings. `.md`, `.py` and `.sh` are countries too,
/// so they do not count.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?i)https?://[^\s<>"'`)\]}]+|\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+"#,
        r"(?:com|org|net|edu|gov|io|dev|ai|app|info|co|uk|de|fr|eu|ch|jp|cn|us|ca|au|example)\b"
    ))
    .expect("a valid pattern")
});

/// Lints an eval for all `judges` that may decide it. Reports a problem once, even if several judges have it.
pub(super) fn lint_urls(
    lints: &mut RubricLints<'_>,
    linted: LintedEval<'_>,
    judges: &[&JudgeConfig],
) {
    let blind = |judge: &&&JudgeConfig| {
        let opens = judge.tools.iter().any(|tool| tool.name == FETCH_TOOL);
        // Recorded and source verdicts exist already, so their judges open nothing.
        !opens && !matches!(judge.provider, ProviderKind::Replay | ProviderKind::Source)
    };
    // If every judge can open addresses, there is nothing to report.
    let blind = judges.iter().filter(blind);
    let blind: Vec<String> = blind.map(|judge| format!("`{}`", judge.name)).collect();
    let (who, owner_has, give) = match &blind[..] {
        [] => return,
        [one] => (format!("the judge {one}"), "it has", "the judge"),
        many => (
            format!("the judges {}", many.join(", ")),
            "they have",
            "each of them",
        ),
    };
    let mut first = None;
    // `model` and `system_prompt` are not about the judged text.
    let into = |key: &str| !matches!(key, "model" | "system_prompt");
    for_each_text(&linted.eval.params, "", &into, &mut |pointer, text| {
        if first.is_none()
            && let Some(address) = find_address(text)
        {
            first = Some((pointer.to_owned(), address));
        }
    });
    let Some((pointer, address)) = first else {
        return;
    };
    let param = pointer.split('/').nth(1).unwrap_or_default();
    let what = if param == "scoring_guide" {
        "the scoring guide names"
    } else {
        "this names"
    };
    lints.report_for_eval(
        linted,
        &format!("/params{pointer}"),
        LintMessage {
            lint: "unreachable-url",
            message: format!(
                "{what} {address}, and {who} cannot open it: {owner_has} no {FETCH_TOOL}"
            ),
            help: format!("give {give} `tools: [{FETCH_TOOL}]`, or leave the address out"),
        },
    );
}

/// Returns the first address of a text. The host of an e-mail address does not count.
fn find_address(text: &str) -> Option<&str> {
    let found = ADDRESS.find_iter(text).find(|found| {
        // `@` precedes the host of an e-mail address; slashes precede parts of paths.
        let before = text[..found.start()].chars().next_back();
        !matches!(before, Some('@' | '/' | '\\'))
    })?;
    Some(
        found
            .as_str()
            .trim_end_matches(['.', ',', ';', ':', '!', '?']),
    )
}

#[cfg(test)]
mod tests {
    use super::find_address;

    #[test]
    fn addresses_are_distinguished_from_files_and_numbers() {
        for (text, found) in [
            (
                "as on https://beam.apache.org/get (today)",
                Some("https://beam.apache.org/get"),
            ),
            (
                "The newest release listed on beam.apache.org.",
                Some("beam.apache.org"),
            ),
            ("See docs.rs or README.md, e.g. main.py, and 2.69.0", None),
            ("Writes to help@shop.example", None),
            ("Uses Node.js, i.e. v20.1", None),
            ("", None),
        ] {
            assert_eq!(find_address(text), found, "{text}");
        }
    }
}
