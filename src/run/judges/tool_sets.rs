//! The opened tools of a run's judges.
//!
//! Responsible for opening the tools of the needed judges before the run records anything. Does not call tools.
//! Opening may ask an MCP server for its tools, and may verify a token.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::add_judge_name;
use crate::clock::Clock;
use crate::event::{CallCx, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor};
use crate::model::{CellIx, Digest, JudgeConfig, Millis, TurnIx};
use crate::run::inputs::snapshot::Compilation;
use crate::run::{RunError, RunUsageError};
use crate::tools::{self, ToolDeps, ToolSet};

/// The time limit for opening. Sources have limits of their own; this one covers the rest.
const MAX_OPEN_TIME: Millis = Millis::from_secs(90);

/// The digests of all tools, by name. They identify recorded tool responses.
#[derive(Debug, Clone, Default)]
pub(in crate::run) struct ToolDigests {
    by_name: HashMap<String, Vec<Digest>>,
    /// The versions of the local data that the tools read, by the tools' digests.
    data_versions: HashMap<Digest, Digest>,
}

impl ToolDigests {
    pub(in crate::run) fn from_sets(sets: &[ToolSet]) -> Self {
        let mut all: Self = sets.iter().flat_map(list_tool_digests).collect();
        for tool in sets.iter().flat_map(|set| &set.tools) {
            if let Some(version) = tool.data_version() {
                all.data_versions.insert(tool.digest(), version);
            }
        }
        all
    }

    /// Returns the digests with the version of the data that one tool reads.
    #[cfg(test)]
    pub(in crate::run) fn with_data_version(mut self, tool: Digest, version: Digest) -> Self {
        self.data_versions.insert(tool, version);
        self
    }

    /// Returns the version of the local data that a tool reads, if it has one.
    pub(in crate::run) fn data_version(&self, tool: &Digest) -> Option<&Digest> {
        self.data_versions.get(tool)
    }

    /// Returns the tools of a name with a recorded digest; all tools of that name if the run recorded no digest.
    pub(in crate::run) fn find_matching<'d>(
        &'d self,
        name: &str,
        then: Option<&'d Digest>,
    ) -> impl Iterator<Item = &'d Digest> {
        let known = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let same = move |digest: &&Digest| then.is_none_or(|then| then == *digest);
        // Without a recorded digest, the name alone identifies the tool.
        known.iter().filter(same)
    }
}

impl FromIterator<(String, Digest)> for ToolDigests {
    fn from_iter<I: IntoIterator<Item = (String, Digest)>>(tools: I) -> Self {
        let mut all: HashMap<String, Vec<Digest>> = HashMap::new();
        for (name, digest) in tools {
            let known = all.entry(name).or_default();
            if !known.contains(&digest) {
                known.push(digest);
            }
        }
        Self {
            by_name: all,
            data_versions: HashMap::new(),
        }
    }
}

/// Returns a judge's tools as the header lists them.
pub(in crate::run) fn list_tool_digests(set: &ToolSet) -> Vec<(String, Digest)> {
    let tools = set.tools.iter();
    tools
        .map(|tool| (tool.decl().name.clone(), tool.digest()))
        .collect()
}

/// Opens the tools of every needed judge, by the judge's position. Other judges get the tools that need no opening.
///
/// Also returns the notes of the opening, such as why a token is not valid. The error lists all problems, each with
/// its judge. With `frozen`, recorded tool responses replace calls.
pub(in crate::run) async fn open_tool_sets(
    compilation: &Compilation,
    deps: &ToolDeps,
    clock: &Arc<dyn Clock>,
    frozen: bool,
) -> Result<(Vec<ToolSet>, Vec<String>), RunError> {
    // Judges open their tools at the same time, because a slow server would delay the others.
    let (cx, mut facts) = discarding_cx(clock, &deps.toolbox.secrets);
    let opening = compilation.judges.iter().zip(0_u32..).map(|(config, ix)| {
        let needed = compilation.needed.contains(&ix);
        let cx = &cx;
        async move {
            if needed {
                open_tool_set(config, deps, cx, frozen).await
            } else {
                Ok(build_unopened_tool_set(config, deps))
            }
        }
    });
    let opening = join_all(opening);
    tokio::pin!(opening);
    let mut notes = Vec::new();
    // Step: collect the notes while the tools open.
    let mut keep = |envelope: RedactedEvent| match envelope.kind {
        // Each judge verifies its tokens itself, so the same note may occur again.
        EventKind::Note { text, .. } if !notes.contains(&text) => notes.push(text),
        _ => {}
    };
    let all = loop {
        tokio::select! {
            biased;
            Some(envelope) = facts.recv() => keep(envelope),
            all = &mut opening => break all,
        }
    };
    // The opening may end before its last notes are read.
    while let Ok(envelope) = facts.try_recv() {
        keep(envelope);
    }
    let (mut sets, mut problems) = (Vec::new(), Vec::new());
    for opened in all {
        match opened {
            Ok(set) => sets.push(set),
            // The reason of a failure may quote a server, which may repeat a secret.
            Err(all) => problems.extend(all.into_iter().map(|why| {
                let clean = cx.out.redactor().redact(&why);
                clean.unwrap_or(why)
            })),
        }
    }
    if problems.is_empty() {
        Ok((sets, notes))
    } else {
        Err(RunUsageError::Problems(problems).into())
    }
}

/// Returns the tools without opening anything, for callers that only list cells.
pub(in crate::run) fn build_unopened_tool_sets(
    compilation: &Compilation,
    deps: &ToolDeps,
) -> Vec<ToolSet> {
    let judges = compilation.judges.iter();
    judges
        .map(|config| build_unopened_tool_set(config, deps))
        .collect()
}

async fn open_tool_set(
    config: &JudgeConfig,
    deps: &ToolDeps,
    cx: &CallCx,
    frozen: bool,
) -> Result<ToolSet, Vec<String>> {
    if config.tools.is_empty() {
        return Ok(ToolSet::default());
    }
    // The connection check replaces the user's tools, so it opens none of them.
    if let Some(tool) = &deps.stub_tool {
        return Ok(ToolSet {
            tools: vec![Arc::clone(tool)],
        });
    }
    let opened = tokio::select! {
        opened = tools::open_tools(&config.tools, deps, cx) => opened
            .map_err(|errors| errors.0.iter().map(ToString::to_string).collect()),
        () = cx.clock.sleep(MAX_OPEN_TIME) => Err(vec![format!("its tools did not open within {MAX_OPEN_TIME}")]),
    };
    let opened = opened.and_then(|set| match find_missing_predecessors(&set) {
        missing if missing.is_empty() => Ok(set),
        missing => Err(missing),
    });
    opened.map_err(|problems| {
        let problems = problems.into_iter();
        problems
            .map(|why| {
                let note = if frozen && !is_built_in_judge(config) {
                    " (recorded tool responses replace the calls, but each request declares the tools, and a \
                             recorded response is identified by the declaration)"
                } else {
                    ""
                };
                format!("{}{note}", add_judge_name(&config.name, &why))
            })
            .collect()
    })
}

/// Finds tools whose required earlier tool this judge lacks: every call of them would be rejected.
fn find_missing_predecessors(set: &ToolSet) -> Vec<String> {
    let mut missing = Vec::new();
    for tool in &set.tools {
        for before in tool
            .prerequisites()
            .iter()
            .filter(|name| set.get(name).is_none())
        {
            let name = &tool.decl().name;
            missing.push(format!(
                "the tool `{name}` comes after `{before}`, which is not among its tools; list it, too"
            ));
        }
    }
    missing
}

fn build_unopened_tool_set(config: &JudgeConfig, deps: &ToolDeps) -> ToolSet {
    // This judge is not needed, so a problem with its tools must not stop the run.
    tools::build_tools(&config.tools, deps).unwrap_or_default()
}

fn is_built_in_judge(config: &JudgeConfig) -> bool {
    let known = tools::built_in_tool_decls();
    let mut uses = config.tools.iter();
    uses.all(|one| known.iter().any(|decl| decl.name == one.name))
}

/// Returns a context that discards facts, because no run exists while tools open.
fn discarding_cx(
    clock: &Arc<dyn Clock>,
    secrets: &[String],
) -> (CallCx, mpsc::Receiver<RedactedEvent>) {
    let (to, facts) = mpsc::channel(64);
    let cx = CallCx {
        out: Emitter::new(
            to,
            Arc::new(MemoryBlobs::default()),
            Arc::new(Redactor::new(secrets.iter().map(String::as_str))),
        ),
        clock: Arc::clone(clock),
        cancel: CancellationToken::new(),
        // No cell exists yet. The number is not used, because the facts are not recorded.
        cell: CellIx(u32::MAX),
        turn: TurnIx(0),
    };
    (cx, facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::BoxFuture;
    use crate::model::{CallIx, RawJson, Rejection, ToolDeclaration, ToolResponse};
    use crate::tools::{SeenUrls, Tool, ValidatedCall};

    /// A tool that requires an earlier call of other tools.
    struct After {
        decl: ToolDeclaration,
        after: Vec<String>,
    }

    fn tool(name: &str, after: &[&str]) -> Arc<dyn Tool> {
        Arc::new(After {
            decl: ToolDeclaration {
                name: name.to_owned(),
                description: String::new(),
                schema: serde_json::json!({"type": "object"}),
            },
            after: after.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    impl Tool for After {
        fn decl(&self) -> &ToolDeclaration {
            &self.decl
        }

        fn prerequisites(&self) -> &[String] {
            &self.after
        }

        fn prepare(
            &self,
            canonical: &RawJson,
            _seen: &SeenUrls,
        ) -> Result<ValidatedCall, Rejection> {
            Ok(ValidatedCall::unchanged(&self.decl.name, canonical))
        }

        fn call<'a>(
            &'a self,
            _: &'a ValidatedCall,
            _: CallIx,
            _: &'a CallCx,
        ) -> BoxFuture<'a, ToolResponse> {
            Box::pin(std::future::ready(ToolResponse::ok("")))
        }
    }

    #[test]
    fn tool_with_a_missing_prerequisite_is_reported() {
        let set = ToolSet {
            tools: vec![tool("a", &[]), tool("b", &["a", "login"])],
        };
        assert_eq!(
            find_missing_predecessors(&set),
            ["the tool `b` comes after `login`, which is not among its tools; list it, too"]
        );
    }

    #[test]
    fn recorded_responses_match_by_digest_or_else_by_name() {
        let (one, two) = (
            Digest::hash_bytes(b"SELECT 1"),
            Digest::hash_bytes(b"SELECT 2"),
        );
        let written = [("find", &one), ("find", &two), ("find", &one)];
        let known: ToolDigests = written
            .map(|(name, digest)| (name.to_owned(), digest.clone()))
            .into_iter()
            .collect();
        let find = |name, then| known.find_matching(name, then).cloned().collect::<Vec<_>>();
        assert_eq!(find("find", Some(&two)), std::slice::from_ref(&two));
        assert_eq!(find("find", None), [one, two.clone()]);
        let three = Digest::hash_bytes(b"SELECT 3");
        assert_eq!(find("find", Some(&three)), []);
        assert_eq!(find("fetch", Some(&two)), []);
    }
}
