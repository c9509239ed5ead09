//! The agent's tool call that is similar to a call of the judge, and the differences between both tool responses.
//!
//! The most common cause of a wrong verdict is that the judge's tool and the agent's tool return different data. Pure.

use serde_json::Value;

use super::document::{DocumentPiece, PieceKind, TranscriptDocument};
use crate::judge::{ClaimFinding, ClaimKind, ClaimPlace, SearchedResponse, VerdictClaim};

/// The number of the agent's calls that are compared, newest first, so that a huge transcript does not block keys.
const MAX_COMPARED_CALLS: usize = 500;
/// The largest compared response, in bytes.
const MAX_COMPARED_BYTES: usize = 256 << 10;
/// The largest number of compared fields.
const MAX_FIELDS: usize = 400;
/// The largest number of fields of one response that the verdict lists. The step of the response compares all of them.
const MAX_LISTED_FIELDS: usize = 5;
/// The longest value of a field that the verdict lists in full, in characters.
const MAX_VALUE_CHARS: usize = 40;
/// The fewest letters and digits of an argument that identifies a thing.
const MIN_ARGUMENT_LEN: usize = 3;

/// A call of the agent next to a call of the judge.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentComparison {
    /// The message with the result that the agent got, from 0.
    pub(crate) message: u32,
    /// The piece of the call in the document.
    pub(crate) piece: usize,
    /// The agent's call as the transcript shows it: `name(arguments)`.
    pub(crate) call: String,
    /// The agent's tool result.
    pub(crate) result: String,
    /// The fields of both responses; empty if one of them is not JSON.
    pub(crate) fields: Vec<ComparedField>,
}

impl AgentComparison {
    /// Returns the number of fields with different values in both responses.
    pub(crate) fn count_differences(&self) -> usize {
        self.fields.iter().filter(|field| field.differs()).count()
    }
}

/// A field of one response or of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ComparedField {
    /// The name in the judge's response, else in the agent's.
    pub(crate) name: String,
    /// The name in the agent's response, if it is another one.
    pub(crate) agent_name: Option<String>,
    pub(crate) judge: Option<String>,
    pub(crate) agent: Option<String>,
}

impl ComparedField {
    /// Returns true if both responses have the field with different values.
    pub(crate) fn differs(&self) -> bool {
        matches!((&self.judge, &self.agent), (Some(judge), Some(agent)) if !is_same_value(judge, agent))
    }
}

/// Finds the most similar call of the agent and compares its result with the response to the judge.
pub(crate) fn compare_with_agent(
    doc: &TranscriptDocument,
    tool: &str,
    arguments: &str,
    response: &str,
) -> Option<AgentComparison> {
    let wanted = collect_identifiers(arguments);
    let calls = doc.call_pieces.iter().rev().map(|at| *at as usize);
    let is_call = |at: &usize| {
        let piece = doc.pieces.get(*at);
        piece.is_some_and(|piece| piece.kind == PieceKind::Call)
    };
    let scored = calls.filter(is_call).take(MAX_COMPARED_CALLS);
    let scored = scored.filter_map(|at| {
        let (name, args) = split_call(doc.text_of(&doc.pieces[at]))?;
        let score = score_similarity((tool, &wanted), (name, &collect_identifiers(args)))?;
        Some((score, at))
    });
    // Among equal calls, the later one is closer to the answer.
    let (_, at) = scored.max()?;
    let result = doc
        .pieces
        .get(at + 1)
        .filter(|next| is_paired_result(next))?;
    let message = result.message;
    let result = doc.text_of(result);
    Some(AgentComparison {
        message,
        piece: at,
        call: doc.text_of(&doc.pieces[at]).to_owned(),
        result: result.to_owned(),
        fields: compare_fields(response, result),
    })
}

/// Returns the fields of a response that have another value in the response to the agent's similar call.
pub(crate) fn list_differing_fields(
    found: &AgentComparison,
    response: &SearchedResponse<'_>,
) -> Vec<VerdictClaim> {
    let differing = found.fields.iter().filter(|field| field.differs());
    let claims = differing.filter_map(|field| {
        let (judge, agent) = field.judge.as_ref().zip(field.agent.as_ref())?;
        Some(VerdictClaim {
            text: format!("{} {}", field.name, shorten_value(judge)),
            kind: ClaimKind::Field,
            cited: None,
            places: vec![ClaimPlace::Response {
                position: response.position,
                number: response.number,
                range: 0..0,
            }],
            finding: ClaimFinding::AgentDiffers,
            agent: Some((shorten_value(agent), found.message)),
        })
    });
    claims.take(MAX_LISTED_FIELDS).collect()
}

/// Cuts a long value, and puts it on one line.
fn shorten_value(value: &str) -> String {
    let words: Vec<&str> = value.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_VALUE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn is_paired_result(piece: &DocumentPiece) -> bool {
    matches!(piece.kind, PieceKind::Result { paired: true, .. })
}

/// Splits `name(arguments)`.
fn split_call(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('(')?;
    Some((name, rest.strip_suffix(')').unwrap_or(rest)))
}

/// Returns the texts and numbers in arguments that can identify a thing, without punctuation and case.
fn collect_identifiers(arguments: &str) -> Vec<String> {
    fn collect(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::String(text) => out.push(normalize(text)),
            Value::Number(number) => out.push(normalize(&number.to_string())),
            Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
            Value::Object(fields) => fields.values().for_each(|field| collect(field, out)),
            Value::Null | Value::Bool(_) => {}
        }
    }
    let mut out = Vec::new();
    if let Ok(value) = serde_json::from_str::<Value>(arguments) {
        collect(&value, &mut out);
    }
    out.retain(|text| text.chars().count() >= MIN_ARGUMENT_LEN);
    out
}

fn normalize(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

/// Returns the similarity of two calls; `None` if they are not about the same thing.
fn score_similarity(
    (judge_tool, judge_ids): (&str, &[String]),
    (agent_tool, agent_ids): (&str, &[String]),
) -> Option<usize> {
    let shared = judge_ids.iter().filter(|id| agent_ids.contains(id)).count();
    let words = |name: &str| -> Vec<String> {
        let words = name.split(|c: char| !c.is_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let agent_words = words(agent_tool);
    let names = words(judge_tool)
        .iter()
        .filter(|word| agent_words.contains(word))
        .count();
    // Without arguments, only the name can show that both ask the same.
    let bare = judge_ids.is_empty() && agent_ids.is_empty() && judge_tool == agent_tool;
    (shared > 0 || bare).then_some(shared * 4 + names)
}

/// Returns the fields of two JSON texts side by side: first by name, then by value.
fn compare_fields(judge: &str, agent: &str) -> Vec<ComparedField> {
    if judge.len().max(agent.len()) > MAX_COMPARED_BYTES {
        return Vec::new();
    }
    let (Some(judge), Some(agent)) = (list_fields(judge), list_fields(agent)) else {
        return Vec::new();
    };
    let mut rest: Vec<Option<(String, String)>> = agent.into_iter().map(Some).collect();
    let mut out: Vec<ComparedField> = judge
        .into_iter()
        .map(|(name, value)| {
            let same_name = |other: &Option<(String, String)>| {
                let other = other.as_ref();
                other.is_some_and(|(other, _)| leaf(other) == leaf(&name))
            };
            let partner = rest.iter().position(same_name);
            let partner = partner.and_then(|at| rest[at].take());
            ComparedField {
                agent: partner.map(|(_, value)| value),
                agent_name: None,
                name,
                judge: Some(value),
            }
        })
        .collect();
    // A field of another name with the same value is the same fact.
    for field in out.iter_mut().filter(|field| field.agent.is_none()) {
        let value = field.judge.clone().unwrap_or_default();
        let same_value = |other: &Option<(String, String)>| {
            let other = other.as_ref();
            normalize(&value).len() >= MIN_ARGUMENT_LEN
                && other.is_some_and(|(_, other)| is_same_value(&value, other))
        };
        if let Some((name, value)) = rest
            .iter()
            .position(same_value)
            .and_then(|at| rest[at].take())
        {
            field.agent_name = Some(name);
            field.agent = Some(value);
        }
    }
    out.extend(
        rest.into_iter()
            .flatten()
            .map(|(name, value)| ComparedField {
                name,
                agent_name: None,
                judge: None,
                agent: Some(value),
            }),
    );
    out
}

fn leaf(path: &str) -> String {
    normalize(
        path.rsplit(['.', ']'])
            .find(|part| !part.is_empty())
            .unwrap_or(path),
    )
}

fn is_same_value(one: &str, other: &str) -> bool {
    match (one.trim().parse::<f64>(), other.trim().parse::<f64>()) {
        (Ok(one), Ok(other)) => one.total_cmp(&other).is_eq(),
        _ => normalize(one) == normalize(other),
    }
}

/// Returns the scalars of a JSON object or list with their paths; `None` if the text is neither.
fn list_fields(text: &str) -> Option<Vec<(String, String)>> {
    fn list(path: &str, value: &Value, out: &mut Vec<(String, String)>) {
        if out.len() >= MAX_FIELDS {
            return;
        }
        let scalar = match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    list(&path, value, out);
                }
                return;
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    // The only row of a query needs no number.
                    let path = if items.len() == 1 && path.is_empty() {
                        String::new()
                    } else {
                        format!("{path}[{at}]")
                    };
                    list(&path, item, out);
                }
                return;
            }
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        out.push((path.to_owned(), scalar));
    }
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let mut out = Vec::new();
    if value.is_object() || value.is_array() {
        list("", &value, &mut out);
    }
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_other_values_than_the_agent_got_are_listed() {
        let field = |name: &str, judge: &str, agent: &str| ComparedField {
            name: name.to_owned(),
            agent_name: None,
            judge: Some(judge.to_owned()),
            agent: Some(agent.to_owned()),
        };
        let found = AgentComparison {
            message: 2,
            piece: 0,
            call: String::new(),
            result: String::new(),
            fields: vec![
                field("city", "Cork", "Cork"),
                field("total", "190.25", "195.25"),
            ],
        };
        let response = SearchedResponse {
            position: crate::event::CallPosition { turn: 0, call: 0 },
            number: Some(1),
            text: "",
        };
        let claims = list_differing_fields(&found, &response);
        let listed: Vec<String> = claims
            .iter()
            .map(|claim| format!("{}: {}", claim.text, claim.describe_finding()))
            .collect();
        assert_eq!(
            listed,
            ["total 190.25: fetch 1, but the agent got 195.25 in message 2"]
        );
    }

    fn document(calls: &[(&str, &str)]) -> TranscriptDocument {
        let mut doc = TranscriptDocument::default();
        for (number, (call, result)) in (0_u32..).zip(calls) {
            for (text, kind) in [
                (*call, PieceKind::Call),
                (
                    *result,
                    PieceKind::Result {
                        error: false,
                        paired: true,
                    },
                ),
            ] {
                let from = doc.text.len();
                doc.text.push_str(text);
                let at = u32::try_from(doc.pieces.len()).expect("few");
                doc.call_pieces.push(at);
                doc.pieces.push(DocumentPiece {
                    message: number,
                    part: 0,
                    kind,
                    heading_len: 0,
                    range: from..doc.text.len(),
                });
            }
        }
        doc
    }

    #[test]
    fn response_of_the_agents_similar_call_shows_the_different_total() {
        let doc = document(&[
            ("lookup_order({\"order\": \"TF-9999\"})", "{\"total\": 1}"),
            (
                "lookup_order({\"order_id\": \"TF-4107\"})",
                "{\"order_id\": \"TF-4107\", \"total\": 195.25, \"status\": \"shipped\", \"carrier\": \"An Post\"}",
            ),
        ]);
        let found = compare_with_agent(
            &doc,
            "find_order",
            "{\"number\": \"TF4107\"}",
            "[{\"number\": \"TF-4107\", \"total\": \"190.25\", \"status\": \"Shipped\", \"city\": \"Cork\"}]",
        );
        let found = found.expect("the agent asked for the same order");
        assert_eq!(found.message, 1);
        assert_eq!(found.count_differences(), 1);
        let rows: Vec<(&str, Option<&str>, Option<&str>, bool)> = found
            .fields
            .iter()
            .map(|field| {
                let (judge, agent) = (field.judge.as_deref(), field.agent.as_deref());
                (field.name.as_str(), judge, agent, field.differs())
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("number", Some("TF-4107"), Some("TF-4107"), false),
                ("total", Some("190.25"), Some("195.25"), true),
                ("status", Some("Shipped"), Some("shipped"), false),
                ("city", Some("Cork"), None, false),
                ("carrier", None, Some("An Post"), false),
            ]
        );
    }

    #[test]
    fn difference_names_the_message_with_the_result_and_not_that_of_the_call() {
        let mut doc = document(&[("find_order({\"order\": \"TF-4107\"})", "{\"total\": 1}")]);
        doc.pieces[1].message = 1;
        let arguments = "{\"order\": \"TF-4107\"}";
        let found = compare_with_agent(&doc, "find_order", arguments, "{\"total\": 2}");
        assert_eq!(found.expect("a similar call").message, 1);
    }

    #[test]
    fn call_about_another_thing_is_not_compared() {
        let doc = document(&[("find_order({\"order\": \"TF-9999\"})", "{\"total\": 1}")]);
        let found = compare_with_agent(&doc, "find_order", "{\"number\": \"TF-4107\"}", "{}");
        assert_eq!(found, None);
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert!(is_same_value("12.50", "12.5"));
        assert!(!is_same_value("12.5", "125"));
    }

    proptest::proptest! {
        #[test]
        fn any_two_texts_are_compared(judge in "[\\[\\]{}\":,a-z0-9. ]{0,60}", agent in "[\\[\\]{}\":,a-z0-9. ]{0,60}") {
            for field in compare_fields(&judge, &agent) {
                proptest::prop_assert!(field.judge.is_some() || field.agent.is_some());
            }
        }
    }
}
