//! Judges of the verdicts that transcripts carry: there by the tool's name, once something names them.

use indexmap::IndexMap;

use crate::model::{JudgeConfig, find_source_judge};

/// Adds those of the named judges that nobody configured and that are tools whose verdicts transcripts may carry.
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
