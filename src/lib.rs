//! dicta: a terminal workbench for people who write rubrics for LLM judges.
//!
//! > Edit a rubric, watch the judge think, see which verdicts moved, and know whether that is progress.
//!
//! ```text
//!  rubric.yaml ──► rubric::load ──────┐
//!  transcripts ──► transcript ────────┤
//!  dicta.yaml ───► workspace ─────────┴► run::plan ─► run::execute ── facts ─► sequencer = recorder ─► RunEvent
//!                                           │              │                        (seq, write)          │
//!                               handlers ◄──┘   judge ◄────┘ provider, tools                  ┌───────────┤
//!                                                                       record::Player ─►     ▼           ▼
//!                                                                       (paced, same)     report::…   RunState
//!                                                                                                         │
//!                          keys, mouse, files ─► tui: Msg ─► update(&mut Model) ─► view(&Model) ◄─────────┘
//! ```
//!
//! Recorded before shown, by construction: there is one pipeline. A replay is the live path with another source.
//!
//! Floors, lowest first; a module imports only from floors below (`tests/tidy.rs` holds them to it):
//!
//! 1. [`model`] nouns · [`diag`] problems in files, the one YAML reader · [`clock`] time · [`schema`] JSON Schema ·
//!    [`query`] JMESPath
//! 2. [`event`] the one event type, its fold, the way in · [`net`] the only HTTP client builder
//! 3. [`transcript`] readers, one a format, each into the native form · [`rubric`] rubric text · [`provider`] model dialects · [`tools`] judge tools
//! 4. [`handlers`] eval types
//! 5. [`judge`] the trace · [`record`] writer, reader, store · [`workspace`] dicta.yaml, discovery, labels read and written
//! 6. [`run`] plan, schedule, cache · [`compare`] flips · [`report`] outputs
//! 7. [`theme`] what things look like · [`tui`] the workbench
//! 8. [`cli`] the commands

pub mod cli;
pub mod clock;
pub mod compare;
pub mod diag;
pub mod event;
pub mod handlers;
pub mod judge;
pub mod model;
pub mod net;
pub mod provider;
pub mod query;
pub mod record;
pub mod report;
pub mod rubric;
pub mod run;
pub mod schema;
pub mod theme;
pub mod tools;
pub mod transcript;
pub mod tui;
pub mod workspace;
