//! Source judges: they exist under the tool's name as soon as a rubric or dicta.yaml names them.

use indexmap::IndexMap;

use crate::model::{JudgeConfig, find_source_judge};

/// Adds the named judges that dicta.yaml does not configure and that are tools with source verdicts.
pub(super) fn add_source_judges<'n>(
    named: impl IntoIterator<Item = &'n String>,
    judges: &mut IndexMap<String, JudgeConfig>,
) {
    for name in named {
        if !judges.contains_key(name)
            && let Some(judge) = find_source_judge(name)
        {
            judges.insert(name.clone(), judge.clone());
        }
    }
}
