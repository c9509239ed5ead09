//! `dicta check --connect`: tests every tool source once, and opens the tools of each judge.

use std::fmt::Write as _;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::CommandCx;
use super::tool_context::{build_redactor, with_call_cx};
use crate::event::CallCx;
use crate::model::{JudgeConfig, JudgeTool, Millis};
use crate::tools::toolbox::INLINE_SERVER;
use crate::tools::{self, ToolDeps};
use crate::workspace::Workspace;

/// The time limit of a test. A source that takes longer counts as failed.
const PROBE_TIMEOUT: Millis = Millis::from_secs(60);

/// The result of testing a source, a server or a judge's tools.
pub(super) struct ToolProbe {
    /// The tested item: `source shop`, `server of judge j`, `tools of judge j`.
    subject: String,
    name: String,
    kind: String,
    badge: Option<String>,
    /// A description of the tools found, or the failure.
    result: Result<String, ProbeFailure>,
    duration: Millis,
}

/// The failure of a test.
pub(super) enum ProbeFailure {
    /// The configuration is wrong, so trying again has no effect.
    Unusable(String),
    /// The test ran and failed.
    Failed(String),
}

impl ToolProbe {
    /// Returns true if the configuration is wrong, false if the test failed, or None if it succeeded.
    pub(super) fn unusable(&self) -> Option<bool> {
        let failure = self.result.as_ref().err()?;
        Some(matches!(failure, ProbeFailure::Unusable(_)))
    }

    pub(super) fn to_text(&self) -> String {
        let mut out = format!("\n{}: {}\n", self.subject, self.kind);
        let (mark, text) = match &self.result {
            Ok(text) => ('✓', format!("{text}, in {}", self.duration)),
            Err(ProbeFailure::Unusable(why)) => ('✗', format!("cannot be used: {why}")),
            Err(ProbeFailure::Failed(why)) => ('✗', format!("{why} ({})", self.duration)),
        };
        let _infallible = writeln!(out, "  {mark:<9} {text}");
        if let Some(badge) = &self.badge {
            let _infallible = writeln!(out, "  {:<9} {badge}", "!");
        }
        out
    }

    pub(super) fn to_json(&self) -> Value {
        let (text, error) = match &self.result {
            Ok(text) => (Some(text), None),
            Err(ProbeFailure::Unusable(why) | ProbeFailure::Failed(why)) => (None, Some(why)),
        };
        json!({
            "type": "source",
            "source": self.name,
            "what": self.subject,
            "kind": self.kind,
            "ok": self.result.is_ok(),
            "usable": self.unusable() != Some(true),
            "found": text,
            "error": error,
            "badge": self.badge,
            "duration_ms": self.duration.0,
        })
    }
}

/// Returns the number of sources and servers to test.
pub(super) fn count_probes(workspace: &Workspace) -> usize {
    let toolbox = &workspace.tools;
    let servers = workspace.judges.values().flat_map(|judge| &judge.tools);
    // A judge's own server counts as a source, because it is tested in the same way.
    toolbox.sources.len() + servers.filter(|entry| entry.name == INLINE_SERVER).count()
}

/// Tests all sources at the same time. If all succeed, also opens the tools of each judge, which verifies tokens and
/// finds tools that a server lacks.
pub(super) async fn probe_all(workspace: &Workspace, cx: &CommandCx) -> Vec<ToolProbe> {
    let deps = ToolDeps {
        toolbox: Arc::clone(&workspace.tools),
        ..ToolDeps::default()
    };
    let judges: Vec<&JudgeConfig> = workspace.judges.values().collect();
    let work = async |call_cx: &CallCx| {
        let mut probed = probe_sources(&deps, call_cx).await;
        probed.extend(probe_servers(&deps, &judges, call_cx).await);
        // After a failed test, the tools of its judges would only fail with the same reason.
        if probed.iter().all(|one| one.result.is_ok()) {
            probed.extend(probe_judge_tools(&deps, &judges, call_cx).await);
        }
        probed
    };
    let (mut probed, _told) = with_call_cx(&deps.toolbox, cx, work).await;
    // A message of a server may repeat a secret.
    let redactor = build_redactor(&deps.toolbox);
    for one in &mut probed {
        let (Ok(text) | Err(ProbeFailure::Unusable(text) | ProbeFailure::Failed(text))) =
            &mut one.result;
        if let Some(clean) = redactor.redact(text) {
            *text = clean;
        }
    }
    probed
}

async fn probe_sources(deps: &ToolDeps, cx: &CallCx) -> Vec<ToolProbe> {
    let tries = deps
        .toolbox
        .sources
        .iter()
        .map(|(name, source)| async move {
            let began = cx.clock.now();
            let found = with_timeout(cx, async {
                source.probe(cx).await.map_err(|error| error.to_string())
            })
            .await;
            ToolProbe {
                subject: format!("source {name}"),
                name: name.clone(),
                kind: source.kind().to_owned(),
                badge: source.badge(),
                result: found.map_err(ProbeFailure::Failed),
                duration: cx.clock.now().since(began),
            }
        });
    join_all(tries).await
}

async fn probe_servers(deps: &ToolDeps, judges: &[&JudgeConfig], cx: &CallCx) -> Vec<ToolProbe> {
    let entries = judges.iter().flat_map(|judge| {
        let servers = judge
            .tools
            .iter()
            .filter(|entry| entry.name == INLINE_SERVER);
        servers.map(|entry| (judge.name.clone(), entry))
    });
    let tries = entries.map(|(judge, entry)| async move {
        let began = cx.clock.now();
        let opened = async {
            let opened = tools::open_single_tool(entry, deps, cx).await;
            opened.map_err(|errors| errors.to_string())
        };
        let found = with_timeout(cx, opened).await.map(|set| {
            let names = set.decls().into_iter().map(|decl| decl.name);
            format!("tools: {}", names.collect::<Vec<_>>().join(", "))
        });
        ToolProbe {
            subject: format!("server of judge {judge}"),
            name: judge,
            kind: INLINE_SERVER.to_owned(),
            badge: None,
            result: found.map_err(ProbeFailure::Failed),
            duration: cx.clock.now().since(began),
        }
    });
    join_all(tries).await
}

/// Tests the tools of each judge together. Returns the judges whose tools conflict or whose tokens are invalid.
async fn probe_judge_tools(
    deps: &ToolDeps,
    judges: &[&JudgeConfig],
    cx: &CallCx,
) -> Vec<ToolProbe> {
    let known = tools::built_in_tool_decls();
    let built_in = |entry: &JudgeTool| known.iter().any(|decl| decl.name == entry.name);
    let tests = judges
        .iter()
        // Built-in tools need neither a source nor a token.
        .filter(|judge| !judge.tools.iter().all(built_in));
    let tries = tests.map(|judge| async move {
        let began = cx.clock.now();
        let opened = async {
            let opened = tools::open_tools(&judge.tools, deps, cx).await;
            opened.map_err(|errors| errors.to_string())
        };
        let why = with_timeout(cx, opened).await.err()?;
        Some(ToolProbe {
            subject: format!("tools of judge {}", judge.name),
            name: judge.name.clone(),
            kind: "tools".to_owned(),
            badge: None,
            // All sources and servers work, so the judge's own settings are the cause.
            result: Err(ProbeFailure::Unusable(why)),
            duration: cx.clock.now().since(began),
        })
    });
    join_all(tries).await.into_iter().flatten().collect()
}

async fn with_timeout<T>(
    cx: &CallCx,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    tokio::select! {
        done = work => done,
        () = cx.clock.sleep(PROBE_TIMEOUT) => Err(format!("no response within {PROBE_TIMEOUT}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(found: Result<&str, ProbeFailure>) -> ToolProbe {
        ToolProbe {
            subject: "source shop".into(),
            name: "shop".into(),
            kind: "sqlite".into(),
            badge: Some("may write".into()),
            result: found.map(str::to_owned),
            duration: Millis(12),
        }
    }

    #[test]
    fn probe_reports_the_tools_or_the_failure() {
        let well = probed(Ok("SQLite 3.50, 4 tables"));
        assert_eq!(well.unusable(), None);
        assert!(
            well.to_text().contains("source shop: sqlite\n  ✓"),
            "{}",
            well.to_text()
        );
        assert!(well.to_text().contains("may write"));
        let failed = probed(Err(ProbeFailure::Failed("no such file".into())));
        assert_eq!(failed.unusable(), Some(false));
        assert_eq!(failed.to_json()["error"], "no such file");
        let unusable = probed(Err(ProbeFailure::Unusable("the token is expired".into())));
        assert_eq!(unusable.unusable(), Some(true));
        assert_eq!(unusable.to_json()["usable"], false);
    }
}
