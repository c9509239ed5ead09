//! One run of an agent, from `conversation_history`.
//!
//! Responsible for turns, calls and their numbers. A turn is `{"user", "agent"}`. The agent's side is text, or the JSON
//! that evalbench makes of a CLI's output: `{"response", "tool_calls": [{"tool_id", "tool_name", "parameters",
//! "status", "response"}], "session_id", "stats"}`. A turn with calls becomes a message with the calls, the results,
//! and a message with the response. Older runs have no list of calls but `stats.tools.byName`. Then the calls come from
//! there, one name at a time, and the metadata has `calls_from`. Tokens, cost and latency belong to a turn. The
//! transcript has their sums if every turn has them, as in evalbench's own scorers. Does not read tables.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::{
    MessageRole, SourceText, ToolCall, ToolResult, TranscriptMessage, TranscriptPart,
};
use crate::transcript::metadata::{MetadataBuilder, SourceUsage};

/// A conversation with its metadata.
#[derive(Debug, Default)]
pub(super) struct EvalbenchConversation {
    pub(super) messages: Vec<TranscriptMessage<'static>>,
    /// The last output of the agent, as written.
    pub(super) last_output: String,
    usage: Option<SourceUsage>,
    cost: Option<f64>,
    latency: Option<f64>,
    turns: u32,
}

#[derive(Deserialize)]
struct EvalbenchTurn {
    #[serde(default)]
    user: Value,
    #[serde(default)]
    agent: Value,
}

/// The metrics of one turn, summed over its models.
#[derive(Debug, Default, Clone, Copy)]
struct EvalbenchTurnMetrics {
    usage: Option<SourceUsage>,
    cost: Option<f64>,
    latency: Option<f64>,
}

impl EvalbenchConversation {
    /// Parses the column. The error is a sentence fragment.
    pub(super) fn parse(history: &str) -> Result<Self, String> {
        let turns: Vec<EvalbenchTurn> = serde_json::from_str(history).map_err(|why| {
            format!("its `conversation_history` is not a JSON list of turns: {why}")
        })?;
        let mut conversation = Self::default();
        for turn in turns {
            conversation.push_user(value_text(&turn.user));
            conversation.push_agent(&turn.agent);
        }
        Ok(conversation)
    }

    /// Adds a message of the user.
    pub(super) fn push_user(&mut self, text: String) {
        self.push_message(
            MessageRole::User,
            vec![TranscriptPart::Text(text.into())],
            MetadataBuilder::default(),
        );
    }

    /// Adds a message of the agent: text, or the JSON of a CLI.
    pub(super) fn push_agent(&mut self, output: &Value) {
        let written = value_text(output);
        let object = match output {
            Value::Object(object) => Some(object.clone()),
            _ => serde_json::from_str::<Map<String, Value>>(&written).ok(),
        };
        // An agent may itself reply with JSON, so only the keys of evalbench count.
        let is_cli_output = |object: &Map<String, Value>| {
            ["response", "tool_calls", "stats"]
                .iter()
                .any(|key| object.contains_key(*key))
        };
        if let Some(object) = object.filter(is_cli_output) {
            self.add_turn(&object);
        } else {
            // A turn without metrics makes the sums unknown.
            self.add_metrics(EvalbenchTurnMetrics::default());
            if !written.is_empty() {
                let parts = vec![TranscriptPart::Text(written.clone().into())];
                self.push_message(MessageRole::Assistant, parts, MetadataBuilder::default());
            }
        }
        self.last_output = written;
    }

    fn add_turn(&mut self, turn: &Map<String, Value>) {
        let stats = turn.get("stats").unwrap_or(&Value::Null);
        let metrics = EvalbenchTurnMetrics::from_stats(stats);
        self.add_metrics(metrics);
        let mut meta = MetadataBuilder::default();
        if let Some(usage) = metrics.usage {
            meta.set("usage", usage.to_json());
        }
        meta.set("cost_usd", metrics.cost);
        meta.set("latency_ms", metrics.latency);
        let by_name = &stats["tools"]["byName"];
        // Newer runs list the calls in order. Older runs only have them by name.
        match turn.get("tool_calls").and_then(Value::as_array) {
            Some(calls) => self.add_calls(calls, by_name),
            None => self.add_calls_by_name(by_name),
        }
        let response = value_text(turn.get("response").unwrap_or(&Value::Null));
        meta.set("session_id", turn.get("session_id").cloned());
        let parts = vec![TranscriptPart::Text(response.into())];
        self.push_message(MessageRole::Assistant, parts, meta);
    }

    fn add_calls(&mut self, calls: &[Value], by_name: &Value) {
        // Without calls, the response alone is the message.
        if calls.is_empty() {
            return;
        }
        let name = |call: &Value| {
            value_text(
                call.get("tool_name")
                    .or(call.get("name"))
                    .unwrap_or(&Value::Null),
            )
        };
        // The number of the turn makes generated ids unique within the conversation.
        let turn = self.turns;
        // Some CLIs record no id, but a call and its result need the same one.
        let id = |at: usize, call: &Value| match value_text(&call["tool_id"]) {
            tool_id if tool_id.is_empty() => format!("turn_{turn}_call_{}", at + 1),
            tool_id => tool_id,
        };
        let parts = calls.iter().enumerate().map(|(at, call)| {
            let parameters = match &call["parameters"] {
                Value::String(text) => text.clone(),
                Value::Null => "{}".to_owned(),
                other => other.to_string(),
            };
            TranscriptPart::ToolCall(ToolCall {
                id: id(at, call).into(),
                name: name(call).into(),
                arguments: parameters.into(),
            })
        });
        // All calls first, then all results: the run does not record their order.
        let parts = parts.collect();
        self.push_message(MessageRole::Assistant, parts, MetadataBuilder::default());
        for (at, call) in calls.iter().enumerate() {
            let is_error = match call["status"].as_str() {
                Some("success") => Some(false),
                Some("error" | "failure" | "failed") => Some(true),
                _ => None,
            };
            // Without response and status, the run recorded no result.
            if call["response"].is_null() && is_error.is_none() {
                continue;
            }
            // evalbench records the duration per tool name, so it is known for a call only if there was one.
            let tool_stats = &by_name[&name(call)];
            let once = tool_stats["count"].as_u64() == Some(1);
            let duration_ms = tool_stats["durationMs"]
                .as_f64()
                .filter(|ms| once && *ms > 0.0);
            let result = ToolResult {
                call_id: id(at, call).into(),
                content: value_text(&call["response"]).into(),
                is_error,
                duration_ms,
            };
            self.push_message(
                MessageRole::Tool,
                vec![TranscriptPart::ToolResult(result)],
                MetadataBuilder::default(),
            );
        }
    }

    fn add_calls_by_name(&mut self, by_name: &Value) {
        let mut parts = Vec::new();
        for (name, tool_stats) in by_name.as_object().into_iter().flatten() {
            let parameters = tool_stats["parameters"].as_array();
            for parameters in parameters.into_iter().flatten() {
                parts.push(TranscriptPart::ToolCall(ToolCall {
                    // `byName` records only the arguments, without ids or results.
                    id: SourceText::default(),
                    name: name.clone().into(),
                    arguments: parameters.to_string().into(),
                }));
            }
        }
        if !parts.is_empty() {
            let mut meta = MetadataBuilder::default();
            meta.set("calls_from", "stats.tools.byName");
            self.push_message(MessageRole::Assistant, parts, meta);
        }
    }

    fn push_message(
        &mut self,
        role: MessageRole<'static>,
        parts: Vec<TranscriptPart<'static>>,
        meta: MetadataBuilder,
    ) {
        self.messages.push(TranscriptMessage {
            role,
            parts,
            metadata: meta.finish(),
        });
    }

    /// Adds a turn's metrics. A sum is valid only if every turn has the number.
    fn add_metrics(&mut self, metrics: EvalbenchTurnMetrics) {
        let first = self.turns == 0;
        self.turns += 1;
        let sum = |total: Option<f64>, value: Option<f64>| match (first, total, value) {
            (true, _, value) => value,
            (false, Some(total), Some(value)) => Some(total + value),
            _ => None,
        };
        self.cost = sum(self.cost, metrics.cost);
        self.latency = sum(self.latency, metrics.latency);
        self.usage = match (first, self.usage, metrics.usage) {
            (true, _, usage) => usage,
            (false, Some(total), Some(usage)) => Some(total.sum_with(usage)),
            _ => None,
        };
    }

    /// Sets the metadata of the transcript.
    pub(super) fn write_metadata(&self, meta: &mut MetadataBuilder) {
        if let Some(usage) = self.usage {
            meta.set("usage", usage.to_json());
        }
        meta.set("cost_usd", self.cost);
        meta.set("latency_ms", self.latency);
    }
}

impl EvalbenchTurnMetrics {
    fn from_stats(stats: &Value) -> Self {
        // A turn may call several models; its metrics are their sums.
        let mut metrics = Self::default();
        let models = stats["models"].as_object();
        for model in models.into_iter().flatten().map(|(_, model)| model) {
            let tokens = &model["tokens"];
            let count = |key: &str| tokens[key].as_u64();
            // 0 means that the CLI did not count the tokens.
            let some = |key: &str| count(key).filter(|count| *count > 0);
            let usage = SourceUsage {
                input: count("prompt").or(count("input")),
                output: count("candidates"),
                total: count("total"),
                cached: some("cached"),
                thinking: some("thoughts"),
            };
            if usage != SourceUsage::default() {
                metrics.usage = Some(metrics.usage.unwrap_or_default().sum_with(usage));
            }
            let add = |sum: &mut Option<f64>, value: Option<f64>| {
                if let Some(value) = value {
                    *sum = Some(sum.unwrap_or_default() + value);
                }
            };
            // evalbench writes a cost of 0 for a run without prices.
            let cost = model["cost_usd"].as_f64().filter(|cost| *cost > 0.0);
            add(&mut metrics.cost, cost);
            let latency = model["api"]["totalLatencyMs"].as_f64();
            add(&mut metrics.latency, latency);
        }
        metrics
    }
}

/// Returns a value as text: a string, an empty text for null, or JSON.
fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
