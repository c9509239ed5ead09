//! The text formats with their signatures, in the order in which dicta checks them.
//!
//! Responsible for the table. Does not read transcripts.

use super::super::detect::FilePreview;
use super::super::sniff;
use super::{
    NATIVE_FORMAT, TranscriptFormat, adk, agent_bench, ai_sdk, aider, alpaca, anthropic, api_log,
    arena, atif, autogen, azure_eval, bedrock, bedrock_agent, bfcl, braintrust, browser_use,
    chatgpt, claude_code, claude_export, cline, codex, codex_exec, cohere, continue_dev, copilot,
    copilot_cli, csv, cursor, deepeval, deepseek, droid, evalbench, event_stream, flat_spans,
    gemini_cli, gemini_takeout, goose, grok, helicone, helm, http_recording, inspect, item_list,
    kimi, kiro, kiro_ide, langchain, langfuse, langsmith, librechat, livekit, lm_eval, lm_studio,
    mlflow, mt_bench, open_webui, openai_agents, openai_evals, opencode_stream, openhands, opik,
    otlp, pi, preference, promptfoo, promptfoo_csv, qwen_code, ragas, sharegpt, signatures,
    sillytavern, smolagents, spend_log, swe_agent, tau_bench, toolbench, trulens, weave, zed,
};

/// The text formats in the order of detection. A record with `messages` in OpenAI's shapes is native, unless an answer is
/// next to them. So formats with other `messages` come before the native one.
pub(in crate::transcript) const TEXT_FORMATS: &[TranscriptFormat] = &[
    // Before the formats of complete replies, whose keys the chunks have.
    TranscriptFormat {
        name: "a streamed reply (server-sent events)",
        matches: event_stream::is_stream,
        create_reader: Some(|_, preview| Ok(event_stream::open(preview))),
    },
    // The formats of other tools with keys of their own come before those with common keys.
    TranscriptFormat {
        name: "a LangSmith run",
        matches: langsmith::is_runs,
        create_reader: Some(langsmith::open),
    },
    TranscriptFormat {
        name: "a Langfuse export",
        matches: langfuse::is_export,
        create_reader: Some(langfuse::open),
    },
    // Before ChatGPT's export, whose conversations have a `mapping`, too.
    TranscriptFormat {
        name: "a DeepSeek export",
        matches: deepseek::is_export,
        create_reader: Some(|_, preview| Ok(deepseek::open(preview))),
    },
    TranscriptFormat {
        name: "a ChatGPT export",
        matches: chatgpt::is_export,
        create_reader: Some(|_, preview| Ok(chatgpt::open(preview))),
    },
    TranscriptFormat {
        name: "a Grok export",
        matches: grok::is_export,
        create_reader: Some(grok::open),
    },
    TranscriptFormat {
        name: "activities of Gemini in Google Takeout",
        matches: gemini_takeout::is_activity,
        create_reader: Some(|_, preview| Ok(gemini_takeout::open(preview))),
    },
    TranscriptFormat {
        name: "a Claude.ai export",
        matches: claude_export::is_export,
        create_reader: Some(|_, preview| Ok(claude_export::open(preview))),
    },
    TranscriptFormat {
        name: "a Continue session",
        matches: continue_dev::is_session,
        create_reader: Some(|_, preview| Ok(continue_dev::open(preview))),
    },
    TranscriptFormat {
        name: "an Open WebUI chat",
        matches: open_webui::is_chat,
        create_reader: Some(|_, preview| Ok(open_webui::open(preview))),
    },
    TranscriptFormat {
        name: "a LibreChat conversation",
        matches: librechat::is_chat,
        create_reader: Some(|_, preview| Ok(librechat::open(preview))),
    },
    TranscriptFormat {
        name: "a Gemini CLI session",
        matches: gemini_cli::is_session,
        create_reader: Some(|_, preview| Ok(gemini_cli::open(preview))),
    },
    // Before Claude Code's sessions, whose lines have the same keys.
    TranscriptFormat {
        name: "a Qwen Code session",
        matches: qwen_code::is_session,
        create_reader: Some(|_, preview| Ok(qwen_code::open(preview))),
    },
    TranscriptFormat {
        name: "a Cursor chat",
        matches: cursor::is_chat,
        create_reader: Some(|_, preview| Ok(cursor::open(preview))),
    },
    TranscriptFormat {
        name: "a Cursor agent transcript",
        matches: cursor::is_agent_transcript,
        create_reader: Some(|_, preview| Ok(cursor::open_agent_transcript(preview))),
    },
    TranscriptFormat {
        name: "a Copilot chat",
        matches: copilot::is_chat,
        create_reader: Some(copilot::open),
    },
    TranscriptFormat {
        name: "a Copilot CLI session",
        matches: copilot_cli::is_session,
        create_reader: Some(|_, preview| Ok(copilot_cli::open(preview))),
    },
    TranscriptFormat {
        name: "a Factory Droid session",
        matches: droid::is_session,
        create_reader: Some(|_, preview| Ok(droid::open(preview))),
    },
    TranscriptFormat {
        name: "a session of pi or OpenClaw",
        matches: pi::is_session,
        create_reader: Some(|_, preview| Ok(pi::open(preview))),
    },
    TranscriptFormat {
        name: "a Goose session",
        matches: goose::is_session,
        create_reader: Some(|_, preview| Ok(goose::open(preview))),
    },
    TranscriptFormat {
        name: "a chat of the Kiro IDE",
        matches: kiro_ide::is_chat,
        create_reader: Some(|_, preview| Ok(kiro_ide::open(preview))),
    },
    TranscriptFormat {
        name: "a conversation of Kiro CLI or Amazon Q CLI",
        matches: |preview| kiro::is_conversation(preview) || kiro::is_session(preview),
        create_reader: Some(|_, preview| Ok(kiro::open(preview))),
    },
    TranscriptFormat {
        name: "an OpenCode session",
        matches: opencode_stream::is_session,
        create_reader: Some(opencode_stream::open),
    },
    TranscriptFormat {
        name: "a chat history of Aider",
        matches: aider::is_history,
        create_reader: Some(|_, preview| Ok(aider::open(preview))),
    },
    TranscriptFormat {
        name: "a task of Cline or Roo Code",
        matches: cline::is_task,
        create_reader: Some(|_, preview| Ok(cline::open(preview))),
    },
    TranscriptFormat {
        name: "a session of Kimi CLI or Kimi Code",
        matches: kimi::is_session,
        create_reader: Some(|_, preview| Ok(kimi::open(preview))),
    },
    TranscriptFormat {
        name: "a thread of Zed's agent",
        matches: zed::is_thread,
        create_reader: Some(|_, preview| Ok(zed::open(preview))),
    },
    TranscriptFormat {
        name: "an LM Studio chat",
        matches: lm_studio::is_chat,
        create_reader: Some(|_, preview| Ok(lm_studio::open(preview))),
    },
    TranscriptFormat {
        name: "a SillyTavern chat",
        matches: sillytavern::is_chat,
        create_reader: Some(|_, preview| Ok(sillytavern::open(preview))),
    },
    TranscriptFormat {
        name: "a Braintrust log",
        matches: braintrust::is_rows,
        create_reader: Some(braintrust::open),
    },
    TranscriptFormat {
        name: "an MLflow trace",
        matches: mlflow::is_traces,
        create_reader: Some(|_, preview| Ok(mlflow::open(preview))),
    },
    TranscriptFormat {
        name: "calls of Weave",
        matches: weave::is_calls,
        create_reader: Some(weave::open),
    },
    TranscriptFormat {
        name: "an Opik trace",
        matches: opik::is_traces,
        create_reader: Some(opik::open),
    },
    TranscriptFormat {
        name: "rows of Ragas",
        matches: ragas::is_rows,
        create_reader: Some(|_, preview| Ok(ragas::open(preview))),
    },
    TranscriptFormat {
        name: "results of Azure AI Evaluation",
        matches: azure_eval::is_results,
        create_reader: Some(azure_eval::open),
    },
    TranscriptFormat {
        name: "records of TruLens",
        matches: trulens::is_records,
        create_reader: Some(|_, preview| Ok(trulens::open(preview))),
    },
    TranscriptFormat {
        name: "a DeepEval test run",
        matches: deepeval::is_test_run,
        create_reader: Some(deepeval::open_test_run),
    },
    TranscriptFormat {
        name: "a DeepEval trace",
        matches: deepeval::is_trace,
        create_reader: Some(|_, preview| Ok(deepeval::open_trace(preview))),
    },
    TranscriptFormat {
        name: "an ADK session",
        matches: adk::is_session,
        create_reader: Some(|_, preview| Ok(adk::open_session(preview))),
    },
    TranscriptFormat {
        name: "an ADK eval set",
        matches: adk::is_eval,
        create_reader: Some(adk::open_eval),
    },
    TranscriptFormat {
        name: "AutoGen messages",
        matches: autogen::is_messages,
        create_reader: Some(|_, preview| Ok(autogen::open(preview))),
    },
    TranscriptFormat {
        name: "a run state of the OpenAI Agents SDK",
        matches: openai_agents::is_run_state,
        create_reader: Some(|_, preview| Ok(openai_agents::open(preview))),
    },
    TranscriptFormat {
        name: "a log of OpenAI Evals",
        matches: openai_evals::is_log,
        create_reader: Some(|_, preview| Ok(openai_evals::open_log(preview))),
    },
    TranscriptFormat {
        name: "output items of OpenAI's evals",
        matches: openai_evals::is_output_items,
        create_reader: Some(openai_evals::open_output_items),
    },
    TranscriptFormat {
        name: "a list of OpenAI's API (items, messages)",
        matches: item_list::is_page,
        create_reader: Some(|_, preview| Ok(item_list::open(preview))),
    },
    TranscriptFormat {
        name: "a HELM scenario state",
        matches: helm::is_state,
        create_reader: Some(helm::open),
    },
    TranscriptFormat {
        name: "results of BFCL",
        matches: bfcl::is_entries,
        create_reader: Some(|_, preview| Ok(bfcl::open(preview))),
    },
    TranscriptFormat {
        name: "spans of OpenTelemetry (SDK dumps, Phoenix, Jaeger)",
        matches: flat_spans::is_spans,
        create_reader: Some(flat_spans::open),
    },
    TranscriptFormat {
        name: "answers of MT-Bench",
        matches: |preview| mt_bench::is_answers(preview) || mt_bench::is_judgments(preview),
        create_reader: Some(mt_bench::open),
    },
    TranscriptFormat {
        name: "samples of lm-evaluation-harness",
        matches: lm_eval::is_samples,
        create_reader: Some(|_, preview| Ok(lm_eval::open(preview))),
    },
    TranscriptFormat {
        name: "a SWE-agent trajectory",
        matches: swe_agent::is_trajectory,
        create_reader: Some(|_, preview| Ok(swe_agent::open(preview))),
    },
    TranscriptFormat {
        name: "OpenHands events",
        matches: openhands::is_events,
        create_reader: Some(|_, preview| Ok(openhands::open(preview))),
    },
    TranscriptFormat {
        name: "a history of browser-use",
        matches: browser_use::is_history,
        create_reader: Some(|_, preview| Ok(browser_use::open(preview))),
    },
    TranscriptFormat {
        name: "results of AgentBench",
        matches: agent_bench::is_run,
        create_reader: Some(|_, preview| Ok(agent_bench::open(preview))),
    },
    TranscriptFormat {
        name: "results of tau-bench",
        matches: tau_bench::is_tau,
        create_reader: Some(|_, preview| Ok(tau_bench::open_tau(preview))),
    },
    TranscriptFormat {
        name: "results of tau2-bench",
        matches: tau_bench::is_tau2,
        create_reader: Some(tau_bench::open_tau2),
    },
    // Before ShareGPT's conversations, whose keys the dialogues have.
    TranscriptFormat {
        name: "answers of ToolBench",
        matches: |preview| toolbench::is_answer(preview) || toolbench::is_dialogue(preview),
        create_reader: Some(|_, preview| Ok(toolbench::open(preview))),
    },
    TranscriptFormat {
        name: "answers that were compared or rated",
        matches: preference::is_dataset,
        create_reader: Some(|_, preview| Ok(preference::open(preview))),
    },
    TranscriptFormat {
        name: "ShareGPT conversations",
        matches: sharegpt::is_conversation,
        create_reader: Some(|_, preview| Ok(sharegpt::open(preview))),
    },
    TranscriptFormat {
        name: "Alpaca instructions",
        matches: alpaca::is_instruction,
        create_reader: Some(|_, preview| Ok(alpaca::open(preview))),
    },
    TranscriptFormat {
        name: "a trace of Bedrock Agents",
        matches: bedrock_agent::is_trace,
        create_reader: Some(|_, preview| Ok(bedrock_agent::open(preview))),
    },
    TranscriptFormat {
        name: "Bedrock Converse messages",
        matches: bedrock::is_converse,
        create_reader: Some(|_, preview| Ok(bedrock::open(preview))),
    },
    TranscriptFormat {
        name: "LangChain messages",
        matches: langchain::is_messages,
        create_reader: Some(|_, preview| Ok(langchain::open(preview))),
    },
    TranscriptFormat {
        name: "messages of smolagents",
        matches: smolagents::is_messages,
        create_reader: Some(|_, preview| Ok(smolagents::open(preview))),
    },
    TranscriptFormat {
        name: "Vercel AI SDK messages",
        matches: ai_sdk::is_messages,
        create_reader: Some(|_, preview| Ok(ai_sdk::open(preview))),
    },
    TranscriptFormat {
        name: "Cohere chats",
        matches: cohere::is_chat,
        create_reader: Some(|_, preview| {
            let list = cohere::open_list_of_messages(preview);
            Ok(list.unwrap_or_else(|| api_log::open(preview)))
        }),
    },
    TranscriptFormat {
        name: "requests of Helicone",
        matches: helicone::is_requests,
        create_reader: Some(helicone::open),
    },
    TranscriptFormat {
        name: "an invocation log of Bedrock",
        matches: http_recording::is_invocation_log,
        create_reader: Some(|_, preview| Ok(http_recording::open_invocations(preview))),
    },
    TranscriptFormat {
        name: "a recording of HTTP calls (HAR, nock, VCR)",
        matches: http_recording::is_recording,
        create_reader: Some(http_recording::open),
    },
    TranscriptFormat {
        name: "logs of model calls (messages and response)",
        matches: spend_log::is_log_of_calls,
        create_reader: Some(spend_log::open),
    },
    TranscriptFormat {
        name: "Anthropic messages (content blocks)",
        matches: anthropic::is_anthropic_log,
        create_reader: Some(|_, preview| Ok(anthropic::open(preview))),
    },
    // Before Gemini's, whose batches are such pairs; before native files, since logs may hold both.
    TranscriptFormat {
        name: "request and response pairs",
        matches: |preview| {
            preview.first_matches(|s| {
                // The response of a long conversation begins after the preview.
                (s.has("request") && (s.has("response") || s.is_cut()) && !s.has("messages"))
                    || (s.has("key") && (s.has("request") || s.has("response")))
            }) || signatures::has_answer_next_to_messages(preview)
        },
        create_reader: Some(|_, preview| Ok(api_log::open(preview))),
    },
    NATIVE_FORMAT,
    // Before the formats that are recognised by `type` or `metadata` alone.
    TranscriptFormat {
        name: "a result of PromptKit Arena",
        matches: |preview| {
            preview.first_matches(|s| {
                (s.has("RunID") && s.has("Messages"))
                    || (s.has("turns") && s.has("scenario_id"))
                    || (s.has("metadata") && s.has("events"))
            })
        },
        create_reader: Some(arena::open),
    },
    TranscriptFormat {
        name: "a PromptKit recording",
        matches: |preview| {
            preview.first_matches(|s| {
                (s.has("metadata") && s.type_starts_with(&["metadata"]))
                    || (s.has("event") && (s.has("seq") || s.type_starts_with(&["event"])))
            })
        },
        create_reader: Some(arena::open_lines),
    },
    TranscriptFormat {
        name: "a livekit chat history",
        matches: signatures::is_livekit,
        create_reader: Some(livekit::open),
    },
    TranscriptFormat {
        name: "a Codex rollout",
        matches: |preview| {
            preview.first_matches(|s| {
                // Files of the first Codex versions begin with a header without an envelope.
                let has_bare_header = s.has("id") && s.has("timestamp") && !s.has("type");
                (s.has("payload") && s.has("timestamp") && s.has("type"))
                    || (has_bare_header && s.has("instructions") && !s.has("input"))
            }) || codex::has_state_record(preview)
                || codex::is_session_object(preview)
        },
        create_reader: Some(|_, preview| Ok(codex::open(preview))),
    },
    TranscriptFormat {
        name: "the output of `codex exec --json`",
        // The types of the stream have these prefixes, such as `turn.started`.
        matches: |preview| {
            preview.first_matches(|s| s.type_starts_with(&["thread.", "turn.", "item."]))
        },
        create_reader: Some(|_, preview| Ok(codex_exec::open(preview))),
    },
    TranscriptFormat {
        name: "a Claude Code session",
        matches: claude_code::is_session,
        create_reader: Some(|_, preview| Ok(claude_code::open(preview))),
    },
    TranscriptFormat {
        name: "promptfoo results",
        matches: promptfoo::is_results,
        create_reader: Some(promptfoo::open),
    },
    TranscriptFormat {
        name: "a promptfoo table (CSV)",
        matches: promptfoo_csv::is_table,
        create_reader: Some(promptfoo_csv::open),
    },
    TranscriptFormat {
        name: "OpenTelemetry spans (OTLP JSON)",
        // Metrics and other signals may come first; what Grafana Tempo exports begins with `batches`.
        matches: |preview| {
            preview.any_matches(|s| s.has("resourceSpans") || s.has("resourceLogs"))
                // Not `any_matches`: `batches` is a common word.
                || preview.first_matches(|s| s.has("batches"))
        },
        create_reader: Some(otlp::open),
    },
    TranscriptFormat {
        name: "an OpenAI batch",
        matches: |preview| {
            preview.first_matches(|s| {
                s.has("custom_id") && (s.has("response") || s.has("error") || s.has("body"))
            })
        },
        create_reader: Some(|_, preview| Ok(api_log::open(preview))),
    },
    TranscriptFormat {
        name: "OpenAI chat completions",
        matches: signatures::is_chat_completion,
        create_reader: Some(api_log::open_completions),
    },
    TranscriptFormat {
        name: "Gemini contents",
        matches: signatures::is_gemini,
        create_reader: Some(|_, preview| Ok(api_log::open_contents(preview))),
    },
    // Before Anthropic's messages, which have their type and role in common with items.
    TranscriptFormat {
        name: "OpenAI Responses items",
        matches: |preview| {
            api_log::is_responses_items(preview) || signatures::wraps_response_items(preview)
        },
        create_reader: Some(|_, preview| Ok(api_log::open_items(preview))),
    },
    TranscriptFormat {
        name: "OpenAI Responses",
        matches: signatures::is_responses,
        create_reader: Some(|_, preview| Ok(api_log::open(preview))),
    },
    TranscriptFormat {
        name: "a bare list of messages",
        matches: signatures::is_list_of_messages,
        create_reader: Some(|_, preview| Ok(api_log::open_list(preview))),
    },
    TranscriptFormat {
        name: "an Inspect log",
        matches: |preview| {
            // `eval` alone is a common word, so a second key of Inspect is necessary.
            preview.first_matches(|s| {
                s.has("eval") && (s.has("status") || s.has("plan") || s.has("samples"))
            })
        },
        create_reader: Some(inspect::open_json),
    },
    TranscriptFormat {
        name: "a Harbor trajectory (ATIF)",
        matches: |preview| {
            preview.first_matches(|s| s.has("schema_version") && (s.has("steps") || s.has("agent")))
        },
        create_reader: Some(atif::open),
    },
    TranscriptFormat {
        name: "an evalbench evalset",
        matches: evalbench::is_evalset,
        create_reader: Some(evalbench::open_evalset),
    },
    TranscriptFormat {
        // Tables come last: their header is plain text, which has no keys.
        name: "an evalbench result table (CSV)",
        matches: evalbench::is_table,
        create_reader: Some(evalbench::open_table),
    },
    TranscriptFormat {
        name: "a CSV table",
        // The header decides, or, with another delimiter than a comma, the number of cells per line.
        matches: |preview| csv_columns(preview).is_some() || csv::is_table(preview.bytes),
        // Only a field mapping can state the meaning of the columns.
        create_reader: Some(csv::refuse_unmapped),
    },
];

/// Returns the columns of the first line, if it is a CSV header.
fn csv_columns<'h>(preview: &FilePreview<'h>) -> Option<Vec<&'h str>> {
    sniff::parse_csv_header(preview.records.first()?.bytes)
}
