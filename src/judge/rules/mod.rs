//! The built-in judge `rules`: a rule-based checker, not a language model.
//!
//! It uses the same protocol as a model: it is a [`Provider`] whose request is the rendered prompt. Its reply is a verdict,
//! so its trace has the same turns, calls and gates. It reads only the prompt's own blocks and reports what it understood
//! and found, clause by clause. It answers "not applicable" if it can't parse a clause. `score` is the share of clauses
//! that hold; it passes if all hold.
//!
//! # Clauses
//!
//! Clauses are the lines and sentences of criteria and scoring guide, split at "and", "but" and commas before a new
//! verb. A subject may come first: `the answer`, `the reply`, `it` … mean the output, in a session the agent's last
//! words. `the agent` and `the conversation` mean everything the agent said. `must` and `should` may follow. `does
//! not`, `never`, `avoids`, `without` and `no` negate.
//!
//! Guide lines that begin with a score (`1.0  …`) describe degrees and are not clauses. If there is nothing else,
//! `rules` reads the highest one. Numbered criteria (`binary_rubric`) are read and decided one by one. `rules` can't
//! read behaviors to count, goals to name, or calls.
//!
//! | clause | holds if |
//! |---|---|
//! | `mentions "X"`, `names X`, `says "X" or "Y"` | X occurs as whole words, ignoring case. Unquoted: names, versions, hosts; or one plain word if it must occur |
//! | `quotes "X"` · `quotes the page` | X occurs · a phrase that it quotes occurs in a tool result or fetched page |
//! | `has at most 3 sentences`, `is under 50 words`, `exactly one question` | the count of sentences, words, characters, lines, paragraphs, bullet points, questions or links matches |
//! | `asks a question`, `asks for confirmation`, `asks for a password`, `asks about X` | a sentence asks or requests it; "never share your password" does not |
//! | `names the newest … on https://host/page` | it names the highest version (… `date`: the latest date) on that page, which `rules` fetches |
//! | `contains a number` (version, date, amount, link, quote, code block, list, table, emoji, question) | there is one |
//! | `cites a source`, `links to host/path` | it has a URL · one at or below that address |
//! | `apologises` | sorry, apology, regret … |
//! | `begins with "X"`, `ends with "X"`, `ends with a question`, `is JSON`, `is empty` | it does, it is |
//! | `calls the tool X` | the transcript has such a call |
//! | `every number, date and amount in the answer occurs in a tool result`, `is grounded`, `is supported by tool results`, `no invented numbers` | each occurs in a tool result or fetched page, in any spelling (`1,200` is `1200`, `Oct 6` is `2026-10-06`, `2.9` is found in `2.9.3`). The answer's own list numbers don't count. `… in a tool result or a message of the user` also accepts what the user wrote |

/// Declares a pattern that is compiled at its first use. The modules below use it.
macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        pub(super) static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("a valid pattern"));
    };
}

mod clause;
mod clause_check;
mod clause_objects;
mod clause_patterns;
mod explain;
mod grammar;
mod prompt_material;
mod rules_verdict;
mod text_patterns;

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use self::clause_check::{ClauseResult, FetchedPage, PageContent};
pub use self::explain::explain_request_body;
pub use self::grammar::split_clauses;
use self::prompt_material::PromptMaterial;
use self::rules_verdict::{RequestedParts, collect_clauses, state_verdict, state_verdict_in_parts};
use super::{JudgeEngine, JudgeEngineDeps, ScoreRange, VerdictFormat};
use crate::clock::BoxFuture;
use crate::event::{CallCx, DeltaCoalescer, DeltaPart};
use crate::model::{
    CallIx, HistoryBlock, HistoryItem, JudgeConfig, Millis, ModelReply, ReplyCall, StopReason,
    TokenUsage,
};
use crate::model::{RULES_HEAD, SUBMIT_VERDICT};
use crate::provider::{
    CompletedReply, ModelCapabilities, Provider, ProviderError, RequestBody, ToolChoice,
    TurnRequest,
};
use crate::tools::ToolSet;

/// The version of the grammar and its checks; part of the cache key of `rules`. Increase it if a verdict could
/// change.
pub const VERSION: u32 = 1;

/// The only tool that `rules` can use.
const FETCH: &str = "fetch_url";

/// The `rules` judge of a run. With `pace` it writes word by word, so that a person can follow; without, at once.
pub fn build_engine(
    config: JudgeConfig,
    tools: ToolSet,
    deps: JudgeEngineDeps,
    pace: Option<Millis>,
) -> JudgeEngine {
    JudgeEngine::new(config, Arc::new(RulesProvider::new(pace)), tools, deps)
}

/// The `rules` judge as a provider.
#[derive(Debug)]
pub struct RulesProvider {
    caps: ModelCapabilities,
    word_delay: Option<Millis>,
}

impl RulesProvider {
    /// See [`build_engine`].
    pub fn new(word_delay: Option<Millis>) -> Self {
        Self {
            caps: ModelCapabilities {
                structured_output: true,
                forced_call: true,
                dropped: Vec::new(),
            },
            word_delay,
        }
    }

    /// Writes a text as a model does: word by word with a delay, otherwise at once.
    async fn write_text(
        &self,
        deltas: &mut DeltaCoalescer<'_>,
        cx: &CallCx,
        part: DeltaPart,
        text: &str,
    ) {
        let Some(pace) = self.word_delay else {
            return deltas.push(part, text).await;
        };
        for word in text.split_inclusive(char::is_whitespace) {
            deltas.push(part, word).await;
            cx.clock.sleep(pace).await;
        }
    }
}

/// The request of `rules` to itself. It is recorded, and a person can edit it at the gate.
#[derive(Serialize, Deserialize)]
struct RulesRequest {
    judge: String,
    prompt: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    results: Vec<RulesToolResult>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tools: Vec<String>,
    /// The allowed answer: `text`, `any` or `verdict`.
    answer: String,
    /// The lowest and highest score. A tuple, because the recorded body has an array here.
    scale: (f64, f64),
    /// The parts of the verdict, if the eval has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<RequestedParts>,
}

#[derive(Serialize, Deserialize)]
struct RulesToolResult {
    call: String,
    arguments: String,
    result: String,
    is_error: bool,
}

impl Provider for RulesProvider {
    fn capabilities(&self) -> &ModelCapabilities {
        &self.caps
    }

    fn build_body(&self, turn: &TurnRequest<'_>) -> Result<RequestBody, ProviderError> {
        let mut prompt = String::new();
        let mut results = Vec::new();
        let mut calls: &[ReplyCall] = &[];
        for item in turn.history {
            match item {
                HistoryItem::User(blocks) => {
                    // The system text is written for models; `rules` follows its own documentation.
                    for block in blocks {
                        if let HistoryBlock::Text(text) = block {
                            prompt.push_str(text);
                        }
                    }
                }
                // Tool responses contain no name, so they are paired with the calls of the reply before.
                HistoryItem::Model { reply: view, .. } => calls = &view.calls,
                HistoryItem::ToolResponses(answers) => {
                    results.extend(calls.iter().zip(answers).map(|(call, answer)| {
                        RulesToolResult {
                            call: call.name.clone(),
                            arguments: call.raw.clone(),
                            result: answer.text.clone(),
                            is_error: answer.is_error,
                        }
                    }));
                }
            }
        }
        // The schema describes the scale and the parts, whether the verdict is a text or a call.
        let schema = match &turn.tool_choice {
            ToolChoice::Schema(schema) => Some(schema),
            _ => turn
                .tools
                .iter()
                .find(|t| t.name == SUBMIT_VERDICT)
                .map(|t| &t.schema),
        };
        let range = schema.map_or(ScoreRange::DEFAULT, VerdictFormat::score_range_from_schema);
        let request = RulesRequest {
            judge: "rules: a checker, not a model".to_owned(),
            prompt,
            results,
            tools: turn.tools.iter().map(|t| t.name.clone()).collect(),
            answer: match turn.tool_choice {
                ToolChoice::NoTools | ToolChoice::Schema(_) => "text",
                ToolChoice::Auto => "any",
                ToolChoice::ForcedTool(_) => "verdict",
            }
            .to_owned(),
            scale: (range.low, range.high),
            parts: schema.and_then(RequestedParts::from_schema),
        };
        let text =
            serde_json::to_string(&request).map_err(|e| ProviderError::Request(e.to_string()))?;
        Ok(RequestBody {
            pieces: vec![text.into()],
            dropped: Vec::new(),
        })
    }

    fn send<'a>(
        &'a self,
        body: &'a RequestBody,
        attempt: u8,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<CompletedReply, ProviderError>> {
        Box::pin(async move {
            // Read the body and not the turn, because a person may have edited the body.
            let request: RulesRequest = serde_json::from_str(&body.text()).map_err(|e| {
                ProviderError::Request(format!("this is not a request of rules: {e}"))
            })?;
            let work = build_reply(&request).ok_or_else(|| {
                ProviderError::Request(
                    "the prompt doesn't name a marker, so rules can't find its blocks".to_owned(),
                )
            })?;
            let mut deltas = cx.coalesce_deltas(attempt);
            self.write_text(&mut deltas, cx, DeltaPart::Thought, &work.reasoning)
                .await;
            self.write_text(&mut deltas, cx, DeltaPart::Text, &work.text)
                .await;
            for (ix, call) in (0..).map(CallIx).zip(&work.calls) {
                self.write_text(&mut deltas, cx, DeltaPart::Args(ix), &call.raw)
                    .await;
            }
            deltas.finish().await;
            let calls: Vec<_> = work
                .calls
                .iter()
                .map(|c| json!({"name": c.name, "arguments": c.raw}))
                .collect();
            let native = json!({"thought": work.reasoning, "text": work.text, "calls": calls});
            let native = serde_json::value::to_raw_value(&native)
                .map_err(|e| ProviderError::Malformed(e.to_string()))?;
            Ok(CompletedReply {
                native: vec![Arc::<RawValue>::from(native)],
                reply: ModelReply {
                    stop: if work.calls.is_empty() {
                        StopReason::Stop
                    } else {
                        StopReason::ToolCalls
                    },
                    text: work.text,
                    thought: work.reasoning,
                    calls: work.calls,
                },
                // `rules` uses no tokens.
                usage: TokenUsage::default(),
            })
        })
    }
}

/// The reply of `rules` on a turn.
struct RulesReply {
    reasoning: String,
    text: String,
    calls: Vec<ReplyCall>,
}

fn build_reply(request: &RulesRequest) -> Option<RulesReply> {
    let material = PromptMaterial::parse(&request.prompt)?;
    let (clauses, owners) = collect_clauses(&material, request.parts.as_ref());
    let pages = collect_pages(&request.results);
    let clause_results: Vec<ClauseResult> = clauses
        .iter()
        .map(|c| clause_check::check_clause(c, &material, &pages))
        .collect();
    let may_fetch = request.answer == "any" && request.tools.iter().any(|t| t == FETCH);
    // A clause that can't be parsed makes the result "not applicable", so fetching pages is useless.
    let readable = clauses.iter().all(|c| c.check.is_ok());
    let mut missing_pages: Vec<&str> = Vec::new();
    for clause_result in &clause_results {
        if let ClauseResult::NeedsPage(url) = clause_result
            && !missing_pages.contains(&url.as_str())
        {
            missing_pages.push(url);
        }
    }
    let first = pages.is_empty();
    // Fetch all missing pages in one turn.
    if may_fetch && readable && !missing_pages.is_empty() {
        let mut thought = format!("{RULES_HEAD}\n");
        for url in &missing_pages {
            _ = writeln!(thought, "I have to read {url} first.");
        }
        let calls = (1..)
            .zip(&missing_pages)
            .map(|(n, url)| ReplyCall {
                id: format!("page_{n}"),
                name: FETCH.to_owned(),
                raw: json!({ "url": url }).to_string(),
            })
            .collect();
        return Some(RulesReply {
            reasoning: thought,
            text: String::new(),
            calls,
        });
    }
    let verdict = match &request.parts {
        None => {
            let (low, high) = request.scale;
            state_verdict(&clauses, &clause_results, ScoreRange::new(low, high))
        }
        Some(asks) => state_verdict_in_parts(&clauses, &clause_results, &owners, asks),
    };
    // A turn before this one already wrote the first line.
    let mut thought = if first {
        format!("{RULES_HEAD}\n")
    } else {
        String::new()
    };
    thought.push_str(&verdict.explanation);
    let arguments = verdict.json.to_string();
    // The verdict is the reply's text for structured output, otherwise a call.
    let (text, calls) = if request.answer == "text" {
        (arguments, Vec::new())
    } else {
        let call = ReplyCall {
            id: "verdict_1".to_owned(),
            name: SUBMIT_VERDICT.to_owned(),
            raw: arguments,
        };
        (String::new(), vec![call])
    };
    Some(RulesReply {
        reasoning: thought,
        text,
        calls,
    })
}

/// Collects the pages fetched so far, by the URL in the arguments of `fetch_url`.
fn collect_pages(results: &[RulesToolResult]) -> Vec<FetchedPage> {
    #[derive(Deserialize)]
    struct Arguments {
        url: String,
    }
    let mut number = 0;
    let mut pages = Vec::new();
    for asked in results {
        // Failed calls have no `fetch N`, so the numbers must skip them.
        number += usize::from(!asked.is_error);
        let Ok(Arguments { url }) = serde_json::from_str(&asked.arguments) else {
            continue;
        };
        let content = if asked.is_error {
            Err(error_text(&asked.result))
        } else {
            Ok(PageContent {
                number,
                text: strip_delimiters(&asked.result).to_owned(),
            })
        };
        pages.push(FetchedPage { url, content });
    }
    pages
}

/// Returns the text of an error, without dicta's sentence and the delimiting lines around it.
fn error_text(result: &str) -> String {
    let block = result.find("\n<<<").map_or(result, |at| &result[at + 1..]);
    let text = strip_delimiters(block).trim_end_matches('\n');
    text.trim_start_matches("Error: ").to_owned()
}

/// Removes the delimiting lines of a tool response.
fn strip_delimiters(result: &str) -> &str {
    // The first line, then the last line: both begin with the delimiter.
    let inner = result
        .strip_prefix("<<<")
        .and_then(|rest| rest.split_once('\n'))
        .map_or(result, |(_, inner)| inner);
    match inner.trim_end_matches('\n').rsplit_once('\n') {
        Some((inner, last)) if last.starts_with("<<<") => inner,
        _ => inner,
    }
}

#[cfg(test)]
mod tests;
