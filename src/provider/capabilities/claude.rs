//! The capabilities of Claude models by generation: `claude-sonnet-4-5-20250929` is 4.5, on every host.
//!
//! A Claude model whose name states no generation counts as newer than this table. Other models behind this protocol
//! (llama.cpp, gateways) count as lacking structured output and nothing else. A server that ignored the schema would
//! return replies that dicta rejects.

use super::super::ModelCapabilities;
use crate::event::DroppedSetting;
use crate::model::JudgeConfig;

/// Major and minor version.
type ClaudeGeneration = (u8, u8);

const NEWEST: ClaudeGeneration = (u8::MAX, u8::MAX);

/// A range of generations, both ends included, that lacks something.
struct ClaudeLimitation {
    from: ClaudeGeneration,
    to: ClaudeGeneration,
    lacks: &'static str,
    why: &'static str,
}

/// From the vendor's migration guide and model pages as of 2026-11.
const LIMITATIONS: [ClaudeLimitation; 3] = [
    new_limitation((0, 0), (3, 5), "reasoning", "the model does not think"),
    new_limitation(
        (4, 7),
        NEWEST,
        "temperature",
        "Claude models from 4.7 on take no sampling settings",
    ),
    new_limitation(
        (0, 0),
        (4, 0),
        "schema",
        "the model has no structured output",
    ),
];

const fn new_limitation(
    from: ClaudeGeneration,
    to: ClaudeGeneration,
    lacks: &'static str,
    why: &'static str,
) -> ClaudeLimitation {
    ClaudeLimitation {
        from,
        to,
        lacks,
        why,
    }
}

/// The first version of the API in which no model accepts a sampling setting.
const WITHOUT_SAMPLING: &str = "2026-10-21";

/// Returns the generation in a model's name; `None` for a model that isn't a Claude model.
fn parse_generation(model: &str) -> Option<ClaudeGeneration> {
    let (_, name) = model.split_once("claude")?;
    let numbers = name.split(['-', '.', '@', ':']).map(str::parse::<u8>);
    // A date is too large for `u8`; words come before or after the numbers.
    let mut numbers = numbers
        .skip_while(Result::is_err)
        .take_while(Result::is_ok)
        .flatten();
    // A name without a number, such as an alias, is treated as the newest model.
    let Some(major) = numbers.next() else {
        return Some(NEWEST);
    };
    Some((major, numbers.next().unwrap_or(0)))
}

fn find_limitation(model: &str, what: &str) -> Option<&'static str> {
    let generation = parse_generation(model)?;
    let row = LIMITATIONS
        .iter()
        .find(|row| row.lacks == what && (row.from..=row.to).contains(&generation))?;
    Some(row.why)
}

/// The way in which a request makes a model think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider) enum ThinkingMode {
    /// The model decides; `output_config.effort` sets how much.
    Adaptive {
        /// `true` if the model hides its reasoning unless the request asks for a summary.
        hides_reasoning: bool,
    },
    /// The request sets a budget in tokens.
    Budget,
}

/// Returns the thinking mode of a model.
pub(in crate::provider) fn find_thinking_mode(model: &str) -> ThinkingMode {
    match parse_generation(model) {
        Some(generation) if generation >= (4, 6) => ThinkingMode::Adaptive {
            hides_reasoning: generation >= (4, 7),
        },
        _ => ThinkingMode::Budget,
    }
}

/// Returns the most tokens of a reply for a judge without a limit.
///
/// The protocol requires a number, and models reject one above their own limit. If thinking counts toward it, both
/// need room.
pub(in crate::provider) fn default_max_tokens(model: &str) -> u32 {
    match parse_generation(model) {
        Some(generation) if generation <= (3, 4) => 4096,
        Some(generation) if generation >= (4, 0) => 16_384,
        _ => 8192,
    }
}

/// Returns whether the model thinks before it replies: then no function can be forced, and no temperature set.
pub(in crate::provider) fn is_thinking(config: &JudgeConfig) -> bool {
    let extra_body = config.extra_body.as_ref();
    // `extra_body` wins over `reasoning`, as in the request itself.
    if let Some(kind) = extra_body.and_then(|body| body.pointer("/thinking/type")?.as_str()) {
        return kind != "disabled";
    }
    let asked = config.reasoning.as_deref();
    asked.is_some_and(|effort| !is_thinking_off(effort))
        && find_limitation(&config.model, "reasoning").is_none()
}

/// Returns whether `reasoning` turns thinking off.
pub(in crate::provider) fn is_thinking_off(effort: &str) -> bool {
    matches!(effort, "none" | "off" | "0")
}

/// Returns the capabilities of a judge over Anthropic Messages, and its settings that are omitted.
pub(super) fn find_capabilities(config: &JudgeConfig) -> (ModelCapabilities, Vec<&'static str>) {
    let model = &config.model;
    let named = |why: &str| format!("{model}: {why}");
    let mut left_out: Vec<(&'static str, String)> = Vec::new();
    if config.temperature.is_some() {
        // The most permanent reason comes first, because only one is shown.
        if let Some(why) = find_limitation(model, "temperature") {
            left_out.push(("temperature", named(why)));
        } else if is_newer_api(config) {
            let why = format!("anthropic-version {WITHOUT_SAMPLING} takes no sampling settings");
            left_out.push(("temperature", why));
        } else if is_thinking(config) {
            let why = "a model that thinks takes only its default temperature";
            left_out.push(("temperature", named(why)));
        }
    }
    if let Some(why) = find_limitation(model, "reasoning").filter(|_| config.reasoning.is_some()) {
        left_out.push(("reasoning", named(why)));
    }
    if config.seed.is_some() {
        left_out.push(("seed", "Anthropic Messages has no seed".to_owned()));
    }
    let caps = ModelCapabilities {
        // A model of another vendor behind this protocol may lack structured output.
        structured_output: parse_generation(model).is_some()
            && find_limitation(model, "schema").is_none(),
        forced_call: !is_thinking(config),
        dropped: left_out
            .iter()
            .map(|(what, why)| DroppedSetting {
                what: (*what).to_owned(),
                why: why.clone(),
            })
            .collect(),
    };
    let known = left_out.into_iter().map(|(what, _)| what).collect();
    (caps, known)
}

/// Returns whether the user's own `anthropic-version` is one without sampling settings. Versions are dates.
fn is_newer_api(config: &JudgeConfig) -> bool {
    let mut headers = config.headers.iter();
    headers.any(|(name, version)| {
        name.eq_ignore_ascii_case("anthropic-version") && version.as_str() >= WITHOUT_SAMPLING
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProviderKind;

    fn config(model: &str) -> JudgeConfig {
        JudgeConfig {
            model: model.to_owned(),
            ..JudgeConfig::new("j", ProviderKind::Anthropic)
        }
    }

    #[test]
    fn model_name_contains_its_generation() {
        let cases = [
            ("claude-sonnet-4-5-20250929", Some((4, 5))),
            ("claude-opus-4-20250514", Some((4, 0))),
            ("claude-3-5-haiku-latest", Some((3, 5))),
            ("claude-3-haiku-20240307", Some((3, 0))),
            ("claude-sonnet-5", Some((5, 0))),
            ("anthropic/claude-opus-4.7", Some((4, 7))),
            ("anthropic.claude-sonnet-4-5-20250929-v1:0", Some((4, 5))),
            ("claude-sonnet-4-5@20250929", Some((4, 5))),
            ("claude-mythos-preview", Some(NEWEST)),
            ("llama3.2", None),
        ];
        for (name, expected) in cases {
            assert_eq!(parse_generation(name), expected, "{name}");
        }
    }

    #[test]
    fn claude_generation_determines_the_dropped_settings() {
        // Model, reasoning, left out, structured output, a function can be forced.
        type Row = (
            &'static str,
            Option<&'static str>,
            &'static [&'static str],
            bool,
            bool,
        );
        let cases: &[Row] = &[
            ("claude-3-5-sonnet-latest", None, &[], false, true),
            (
                "claude-3-5-sonnet-latest",
                Some("low"),
                &["reasoning"],
                false,
                true,
            ),
            (
                "claude-3-7-sonnet-latest",
                Some("low"),
                &["temperature"],
                false,
                false,
            ),
            ("claude-sonnet-4-5", None, &[], true, true),
            (
                "claude-sonnet-4-6",
                Some("high"),
                &["temperature"],
                true,
                false,
            ),
            ("claude-sonnet-4-6", Some("none"), &[], true, true),
            ("claude-opus-4-7", None, &["temperature"], true, true),
            (
                "claude-sonnet-5-5",
                Some("low"),
                &["temperature"],
                true,
                false,
            ),
            ("tinyllama", None, &[], false, true),
        ];
        for (model, reasoning, left_out, schema, forced) in cases {
            let mut config = config(model);
            config.reasoning = reasoning.map(str::to_owned);
            let (caps, known) = find_capabilities(&config);
            assert_eq!(
                (&known[..], caps.structured_output, caps.forced_call),
                (*left_out, *schema, *forced),
                "{model} {reasoning:?}"
            );
        }
    }

    #[test]
    fn api_version_and_protocol_drop_settings_that_the_model_accepts() {
        let mut config = config("claude-sonnet-4-5");
        config.seed = Some(1);
        config
            .headers
            .insert("Anthropic-Version".to_owned(), "2026-10-21".to_owned());
        let (caps, known) = find_capabilities(&config);
        assert_eq!(known, ["temperature", "seed"]);
        assert!(caps.dropped[0].why.contains("2026-10-21"));
        config.temperature = None;
        assert_eq!(
            find_capabilities(&config).1,
            ["seed"],
            "what is not set is not dropped"
        );
        config.extra_body = Some(serde_json::json!({"thinking": {"type": "adaptive"}}));
        assert!(!find_capabilities(&config).0.forced_call);
    }
}
