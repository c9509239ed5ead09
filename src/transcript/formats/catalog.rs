//! The description of every format that dicta reads, for the documentation.
//!
//! Responsible for the signatures, the meaning of one transcript, and the files that each reader was tested against. The
//! samples of the tests have the shapes of those files, in short. Does not detect or read files.

mod apis;
mod evals;

use super::description::{FormatDescription, SampleOrigin};

/// The formats in the order of detection, in three lists.
pub(crate) const DESCRIPTIONS: [&[FormatDescription]; 3] = [TOOLS, evals::EVALS, apis::APIS];

/// The formats before those of traces and evaluations.
const TOOLS: &[FormatDescription] = &[
    FormatDescription {
        name: "an Inspect log (.eval)",
        known_by: "a zip file",
        transcript: "a sample",
        id: "the sample's; `ID_epoch_N` in a log of several epochs",
        version: "inspect_ai 0.3 (2024-08 to 2026-08)",
        origin: SampleOrigin::Real(
            "logs in inspect_ai, METR/vivaria, inspect_scout and carlosrymer/inspect-ai-owasp-agentic-top10",
        ),
    },
    FormatDescription {
        name: "an SQLite database",
        known_by: "a table `eval_results` or `evals` (promptfoo), `cursorDiskKV` or `ItemTable` (Cursor), `session` with `message` and `part` (OpenCode), `sessions` with `messages` (Goose), `conversations_v2` or `conversations` (Kiro CLI, Amazon Q CLI)",
        transcript: "a result; a chat; a session; a conversation",
        id: "the result's; the chat's; the session's; the conversation's",
        version: "promptfoo of 2024 to 0.121, Cursor 0.40 to 1.7, OpenCode 1.2, Goose 1.10 to 1.20, Amazon Q CLI 1.19",
        origin: SampleOrigin::Real(
            "a database that promptfoo 0.121.20 wrote, and older ones from its migrations; Cursor from the keys of its `state.vscdb`; OpenCode from its tables, as other readers of `opencode.db` describe them; Goose the same; Amazon Q from its migrations",
        ),
    },
    FormatDescription {
        name: "a streamed reply (server-sent events)",
        known_by: "`data:` with JSON; chunks of a reply, one per line or as a list",
        transcript: "a reply",
        id: "the reply's",
        version: "APIs of 2025, AI SDK 5 and 6",
        origin: SampleOrigin::Described(
            "the providers' descriptions of streams; UI messages from recorded streams in vercel/ai",
        ),
    },
    FormatDescription {
        name: "a LangSmith run",
        known_by: "`run_type` with `inputs` or `dotted_order`",
        transcript: "a trace; its branches and sub-agents",
        id: "the trace's",
        version: "LangSmith SDK 0.4",
        origin: SampleOrigin::Described("the schema of runs in langsmith-sdk"),
    },
    FormatDescription {
        name: "a Langfuse export",
        known_by: "`trace` and `observations`; observations with a trace and a type",
        transcript: "a trace; its branches and sub-agents",
        id: "the trace's",
        version: "Langfuse 3 (2025-06 to 2026-03)",
        origin: SampleOrigin::Real("20 exported traces in langfuse/langfuse"),
    },
    FormatDescription {
        name: "a DeepSeek export",
        known_by: "`mapping` of messages with `fragments`",
        transcript: "a conversation: the branch of the newest message",
        id: "the conversation's",
        version: "export of 2026",
        origin: SampleOrigin::Described(
            "conversations of exports that readers of other tools quote",
        ),
    },
    FormatDescription {
        name: "a ChatGPT export",
        known_by: "`mapping` of messages",
        transcript: "a conversation: the branch that was open",
        id: "the conversation's",
        version: "export of 2024 and 2025",
        origin: SampleOrigin::Real(
            "six conversations in sanand0/openai-conversations; others from descriptions of the export",
        ),
    },
    FormatDescription {
        name: "a Grok export",
        known_by: "`conversations` with a `conversation` and `responses`",
        transcript: "a conversation: the branch of the last response",
        id: "the conversation's",
        version: "export of 2025 and 2026",
        origin: SampleOrigin::Described("the keys that converters of the export read"),
    },
    FormatDescription {
        name: "activities of Gemini in Google Takeout",
        known_by: "`header: \"Gemini Apps\"` with `title` and `time`",
        transcript: "a conversation; without `details`, an activity",
        id: "the conversation's, else `FILE:NUMBER`",
        version: "exports of 2024 to 2026",
        origin: SampleOrigin::Described(
            "the counts that three programs publish of real exports, and the records of their tests",
        ),
    },
    FormatDescription {
        name: "a Claude.ai export",
        known_by: "`chat_messages` with `sender`",
        transcript: "a conversation: the branch with the current message, else the last one",
        id: "the conversation's",
        version: "exports of 2024 to 2026-07",
        origin: SampleOrigin::Described(
            "blocks of real exports that public archives quote, and the types in bukzor/prototype.chatfs",
        ),
    },
    FormatDescription {
        name: "a Continue session",
        known_by: "`sessionId` with a `history` of items with a `message`",
        transcript: "a session",
        id: "`sessionId`",
        version: "Continue 1",
        origin: SampleOrigin::Described(
            "the types `Session` and `ChatHistoryItem` in continuedev/continue, and the samples in readers of other tools",
        ),
    },
    FormatDescription {
        name: "an Open WebUI chat",
        known_by: "`history` with `messages` by id, also below `chat`",
        transcript: "a chat: the branch of `currentId`",
        id: "the chat's",
        version: "Open WebUI 0.4 to 0.11",
        origin: SampleOrigin::Described(
            "the code of open-webui/open-webui, and chats that other programs quote",
        ),
    },
    FormatDescription {
        name: "a LibreChat conversation",
        known_by: "`conversationId` with `messages` that have `isCreatedByUser`",
        transcript: "a conversation: the branch of the last message",
        id: "`conversationId`",
        version: "LibreChat 0.7 to 0.8",
        origin: SampleOrigin::Described(
            "the export and the type `TMessage` in danny-avila/LibreChat, and messages in clients of its API",
        ),
    },
    FormatDescription {
        name: "a Gemini CLI session",
        known_by: "`sessionId` and `projectHash`; in a stream, `type: init` with `session_id` and `model`, or `type: tool_use` with `tool_name`",
        transcript: "a session",
        id: "the session's",
        version: "Gemini CLI 0.16 to 0.22, lines of 2026-04, and the stream of 2026-01",
        origin: SampleOrigin::Real(
            "66 sessions in mischa-thisness/M-Gemini, one of lines in Mai0313/VibeCodingTracker, and two streams in repositories of metaphi-agent",
        ),
    },
    FormatDescription {
        name: "a Qwen Code session",
        known_by: "`sessionId` with a `message` of `parts`",
        transcript: "a session; its sub-agents",
        id: "the session's; `ID.agent-X`",
        version: "Qwen Code 0.10 to 0.24",
        origin: SampleOrigin::Described(
            "the code of QwenLM/qwen-code, and lines of real sessions that readers of other tools quote",
        ),
    },
    FormatDescription {
        name: "a Cursor chat",
        known_by: "`composerId` with bubbles; `tabs` with bubbles",
        transcript: "a chat",
        id: "the composer's",
        version: "Cursor 2",
        origin: SampleOrigin::Memory,
    },
    FormatDescription {
        name: "a Cursor agent transcript",
        known_by: "`role` and `message` with content",
        transcript: "the file",
        id: "the file's name",
        version: "Cursor 2",
        origin: SampleOrigin::Real("sanitized sessions in jazzyalex/agent-sessions"),
    },
    FormatDescription {
        name: "a Copilot chat",
        known_by: "`requests` with `responderUsername`, `sessionId` …; lines of changes, the first one with such a chat; a `prompt` with `logs`",
        transcript: "the file; each prompt of a log",
        id: "`sessionId`; `promptId`",
        version: "Copilot Chat 0.31 to 0.49",
        origin: SampleOrigin::Real(
            "exports in dealenx/copilot-chat-analyzer, a stored session in qiaolei81/copilot-session-viewer; changes from the code of microsoft/vscode; logs of prompts from the code of microsoft/vscode-copilot-chat",
        ),
    },
    FormatDescription {
        name: "a Copilot CLI session",
        known_by: "an event `session.start` with `data`",
        transcript: "a session; its sub-agents",
        id: "the session's; `ID.agent-X`",
        version: "Copilot CLI 0.0.400 to 1.0.55",
        origin: SampleOrigin::Real(
            "sanitized sessions in jazzyalex/agent-sessions, and sessions in Mai0313/VibeCodingTracker and qiaolei81/copilot-session-viewer",
        ),
    },
    FormatDescription {
        name: "a Factory Droid session",
        known_by: "`type: session_start`, and lines `type: message` with a `message`; in a stream, `type: message` with `text` and `session_id`",
        transcript: "a session",
        id: "the session's",
        version: "session version 2; the stream of 2025 and 2026",
        origin: SampleOrigin::Real(
            "sanitized sessions and streams in jazzyalex/agent-sessions; other lines from readers of other tools that were tested with real sessions",
        ),
    },
    FormatDescription {
        name: "a session of pi or OpenClaw",
        known_by: "`type: session`, and lines `type: message` with a `message` that has a role",
        transcript: "a session: the branch that was open",
        id: "the session's",
        version: "pi until 0.58 (session versions 1 to 3)",
        origin: SampleOrigin::Real(
            "two sessions of version 1 in badlogic/pi-mono, and one of version 3 in openclaw/openclaw; version 2 from the documentation",
        ),
    },
    FormatDescription {
        name: "a Goose session",
        known_by: "`working_dir` before messages, or with a `conversation`; messages with `toolRequest` or `toolResponse` parts",
        transcript: "a session",
        id: "the session's, else from the file's name",
        version: "Goose 1.0 to 1.20",
        origin: SampleOrigin::Described(
            "the type `MessageContent` in block/goose, and the samples in readers of other tools",
        ),
    },
    FormatDescription {
        name: "a chat of the Kiro IDE",
        known_by: "`executionId` or `actionId`, and a `chat` with the roles `human`, `bot` and `tool`",
        transcript: "the file",
        id: "`FILE:NUMBER`",
        version: "Kiro of 2025 and 2026",
        origin: SampleOrigin::Described("the chats that five readers of other tools quote"),
    },
    FormatDescription {
        name: "a conversation of Kiro CLI or Amazon Q CLI",
        known_by: "`conversation_id` with a `history` of turns; lines with the `kind` `Prompt`, `AssistantMessage` or `ToolResults` and `data`",
        transcript: "a conversation",
        id: "the conversation's, else the file's name",
        version: "Amazon Q CLI 1.13 to 1.19, Kiro CLI until 2.14",
        origin: SampleOrigin::Real(
            "the beginnings of three conversations that `/save` wrote; lines of sessions that readers of other tools quote",
        ),
    },
    FormatDescription {
        name: "an OpenCode session",
        known_by: "`info` and `messages` with `parts`; a session's file of the storage folder, `id` with `projectID` or `title`; in a stream, `sessionID` with a `part`",
        transcript: "a session, with the files of its messages and parts",
        id: "the session's",
        version: "OpenCode 0.1 to 1.17, and the stream of 2026-01",
        origin: SampleOrigin::Real(
            "an export of 1.17 in italo-luz/pfm-categorization, and streams in seichris/takopi; older ones from OpenCode's migrations of its storage, and the files of sessions in jazzyalex/agent-sessions",
        ),
    },
    FormatDescription {
        name: "a chat history of Aider",
        known_by: "`# aider chat started at TIME` as the first line",
        transcript: "a session in which someone wrote",
        id: "`FILE:NUMBER`",
        version: "Aider 0.82 to 0.86, and a history of 2023",
        origin: SampleOrigin::Real(
            "histories in AndrewJacop/Simple-Calulator, AIXMOS537/TMMT, dadmaan/music-anomalizer and BeehiveInnovations/zen-mcp-server, and the one in the tests of Aider-AI/aider",
        ),
    },
    FormatDescription {
        name: "a task of Cline or Roo Code",
        known_by: "entries with `ts` and the `type` `say` or `ask`, whose kind is under that key",
        transcript: "the file",
        id: "`FILE:1`",
        version: "Cline 3 (2025-09 to 2026-02)",
        origin: SampleOrigin::Real(
            "tasks in CoreGems/Cline-Xray, Jeehunter/mcp-vscode-server and haram-333/fineye; Roo Code from entries in readers of other tools",
        ),
    },
    FormatDescription {
        name: "a session of Kimi CLI or Kimi Code",
        known_by: "lines with the role `_checkpoint` or `_system_prompt`; `protocol_version`, and events with `payload` or of the type `context.append_…`",
        transcript: "the file",
        id: "`FILE:1`",
        version: "Kimi CLI 1 (wire 1.3 to 1.10), Kimi Code (wire 1.1 to 1.5)",
        origin: SampleOrigin::Real(
            "sessions in the tests of MoonshotAI/kimi-code; Kimi CLI from the code of MoonshotAI/kimi-cli, and lines in readers of other tools",
        ),
    },
    FormatDescription {
        name: "a thread of Zed's agent",
        known_by: "`messages` whose keys are `User` and `Agent`; a `version` and `segments`",
        transcript: "a thread",
        id: "the thread's, else `FILE:NUMBER`",
        version: "thread versions 0.1 to 0.3",
        origin: SampleOrigin::Described(
            "the types in zed-industries/zed, and threads that readers of other tools quote",
        ),
    },
    FormatDescription {
        name: "an LM Studio chat",
        known_by: "`messages` with `versions`",
        transcript: "a chat",
        id: "`FILE:NUMBER`",
        version: "LM Studio 0.3 and 0.4",
        origin: SampleOrigin::Described(
            "the types in lmstudio-ai/lmstudio-js, and chats that readers of other tools quote",
        ),
    },
    FormatDescription {
        name: "a SillyTavern chat",
        known_by: "lines with `mes` and `is_user`",
        transcript: "a chat",
        id: "`FILE:NUMBER`",
        version: "SillyTavern of 2023 and of 2026-09",
        origin: SampleOrigin::Real(
            "three chats in SillyTavern/SillyTavern and one in jam4435/sillytavern0011; newer keys from lines that other programs quote",
        ),
    },
];
