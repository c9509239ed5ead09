//! Keys of rubrics that an author wrote into dicta.yaml.
//!
//! Responsible for messages that say where such a key belongs. A panel of judges looks like a judge, so authors write it
//! under `judges`.

use serde_json::Value;

use crate::diag::yaml::MappingDecoder;

const RUBRIC_OR_EVAL: &str = "in a rubric, above `evals` or in an eval";
const EVAL: &str = "in an eval of a rubric";
const PARAMS: &str = "under `params` in an eval of a rubric";
/// The keys, and where they belong.
const PLACES: [(&str, &str); 14] = [
    ("jury", RUBRIC_OR_EVAL),
    ("cascade", RUBRIC_OR_EVAL),
    ("applies_to", RUBRIC_OR_EVAL),
    ("evals", "in a rubric, a file that `rubrics` lists"),
    ("repeat", EVAL),
    ("weight", EVAL),
    ("required", EVAL),
    ("allow_na", EVAL),
    ("sample_percentage", EVAL),
    ("criteria", PARAMS),
    ("scoring_guide", PARAMS),
    ("min_score", PARAMS),
    ("max_score", PARAMS),
    ("shots", PARAMS),
];

/// Reports each unknown key that a rubric has.
pub(super) fn report_rubric_keys(fields: &mut MappingDecoder<'_>) {
    for key in fields.unknown_keys() {
        let place = PLACES.iter().find(|(known, _)| *known == key);
        if let Some((_, place)) = place {
            let message = format!("unknown key `{key}`; write it {place}");
            fields.error_at_key(key, "unknown-key", message);
            // `finish` must not report it again.
            fields.ignore_key(key);
        }
    }
}

/// Returns the message about an entry of `judges` that is a panel; `None` for a judge.
pub(super) fn find_panel_among_judges(name: &str, entry: &Value) -> Option<String> {
    let is_panel_key = |key: &str| matches!(key, "jury" | "cascade");
    let panel = match entry {
        Value::Array(_) if is_panel_key(name) => name,
        Value::Object(keys) if !keys.contains_key("provider") && !keys.contains_key("model") => {
            let mut own = keys.keys().map(String::as_str);
            match own.find(|key| is_panel_key(key)) {
                Some(key) => key,
                None if is_panel_key(name) => name,
                None => return None,
            }
        }
        _ => return None,
    };
    Some(format!(
        "a {panel} is not a judge; write `{panel}: {{ judges: [NAME, NAME] }}` {RUBRIC_OR_EVAL}"
    ))
}
