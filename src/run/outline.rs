//! Which cells a run over a workspace would have, without deciding any: what a screen shows before the first run.

use std::sync::Arc;

use super::RunError;
use crate::clock::Clock;
use crate::event::Kind;
use crate::handlers::Registry;
use crate::workspace::{Env, Workspace};

/// Tells the facts that would begin a run over everything, in order and in batches: `run_started`, then `cells_planned` a
/// transcript. Nothing is recorded, sent or decided; keys are not asked for. Stops early when `take` returns `false`.
pub fn outline(
    _workspace: Arc<Workspace>,
    _registry: &Registry,
    _env: &Env,
    _clock: &Arc<dyn Clock>,
    _take: &mut dyn FnMut(Vec<Kind>) -> bool,
) -> Result<(), RunError> {
    Ok(())
}
