//! The judge: one trace from prompt to verdict.
//!
//! Owns the prompt, the loop over turns and tool calls, the verdict form and its parsing, [`Gate`], [`EvidenceStore`]
//! and [`Budget`]; and the built-in [`rules`] judge. Emits facts. Does not print, store or schedule: repeats, juries and
//! cascades are more cells of a plan, not loops in here.
//!
//! ```text
//!  JudgeRequest ─ prompt::render ─► body ─ gate ─ budget ─► provider::call ─► reply ─┬─ submit_verdict / text ─► verdict ─► decide
//!                                    ▲                                               └─ calls: prepare ─ gate ─ evidence ─► tool
//!                                    └──────────────────── answers, in call order ◄──────────────────────────────────┘
//! ```

mod answers;
mod budget;
mod calls;
mod citations;
mod contradiction;
mod deadline;
mod decisions;
mod engine;
mod evidence;
mod form;
mod gate;
mod ledger;
mod limits;
mod marker;
mod meter;
mod parts;
mod pieces;
mod prompt;
pub mod rules;
mod seen;
mod session;
mod summary;
mod trace;
mod unseen;
mod verdict;
mod window;

#[cfg(test)]
mod fake;

pub use budget::{Budget, Reached, Took};
pub use citations::Sources;
pub(crate) use citations::{Place as CitedPlace, place as cited_place};
pub use engine::{Engine, EngineDeps};
pub use evidence::{
    EvidenceKey, EvidenceStore, FrozenEvidence, LiveEvidence, Lookup, MissPolicy, NoEvidence,
};
pub use form::Form;
pub use gate::{Edit, Gate, OpenGate, Proceed, Stop};
pub use marker::{Marker, Secret};
pub use parts::PartsForm;
pub use pieces::book_of;
pub use prompt::{Frame, Prompt, render};
pub use verdict::{NoVerdict, PARSER_VERSION, decide, read_object, read_text};
