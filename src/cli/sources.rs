//! `dicta check --connect`: every source of the tools files tried once, and whether judges' tools open.

use std::fmt::Write as _;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::Cx;
use super::toolbox::{redactor, staged};
use crate::event::CallCx;
use crate::model::{JudgeConfig, JudgeTool, Millis};
use crate::tools::{self, ToolDeps};
use crate::workspace::Workspace;

/// A source that takes longer is not at hand.
const PATIENCE: Millis = Millis::from_secs(60);
/// A server that stands in a judge's `tools:` itself.
const SERVER: &str = "mcp";

/// What came of trying something that tools work on.
pub(super) struct Probed {
    /// `source shop`, `server of judge j`, `tools of judge j`.
    what: String,
    name: String,
    kind: String,
    badge: Option<String>,
    /// What is there, or why it cannot be used.
    found: Result<String, Failure>,
    took: Millis,
}

/// Why something cannot be used.
pub(super) enum Failure {
    /// As it is configured: trying again helps nobody.
    Unusable(String),
    /// It was tried and failed.
    Failed(String),
}

impl Probed {
    /// Whether it cannot be used as it is configured; `None` where it can be.
    pub(super) fn unusable(&self) -> Option<bool> {
        let failure = self.found.as_ref().err()?;
        Some(matches!(failure, Failure::Unusable(_)))
    }

    pub(super) fn human(&self) -> String {
        let mut out = format!("\n{}: {}\n", self.what, self.kind);
        let (mark, text) = match &self.found {
            Ok(text) => ('✓', format!("{text}, in {}", self.took)),
            Err(Failure::Unusable(why)) => ('✗', format!("cannot be used: {why}")),
            Err(Failure::Failed(why)) => ('✗', format!("{why} ({})", self.took)),
        };
        let _infallible = writeln!(out, "  {mark:<9} {text}");
        if let Some(badge) = &self.badge {
            let _infallible = writeln!(out, "  {:<9} {badge}", "!");
        }
        out
    }

    pub(super) fn as_json(&self) -> Value {
        let (text, error) = match &self.found {
            Ok(text) => (Some(text), None),
            Err(Failure::Unusable(why) | Failure::Failed(why)) => (None, Some(why)),
        };
        json!({
            "type": "source",
            "source": self.name,
            "what": self.what,
            "kind": self.kind,
            "ok": self.found.is_ok(),
            "usable": self.unusable() != Some(true),
            "found": text,
            "error": error,
            "badge": self.badge,
            "duration_ms": self.took.0,
        })
    }
}

/// How many there are to be tried.
pub(super) fn count(workspace: &Workspace) -> usize {
    let toolbox = &workspace.tools;
    let servers = workspace.judges.values().flat_map(|judge| &judge.tools);
    toolbox.sources.len() + servers.filter(|entry| entry.name == SERVER).count()
}

/// Tries them all at once. Where all can be used, judges' tools are put together, too: tokens are verified, and a server
/// must have what a judge wants of it.
pub(super) async fn probe(workspace: &Workspace, cx: &Cx) -> Vec<Probed> {
    let deps = ToolDeps {
        toolbox: Arc::clone(&workspace.tools),
        ..ToolDeps::default()
    };
    let judges: Vec<&JudgeConfig> = workspace.judges.values().collect();
    let work = async |call_cx: &CallCx| {
        let mut probed = sources(&deps, call_cx).await;
        probed.extend(servers(&deps, &judges, call_cx).await);
        if probed.iter().all(|one| one.found.is_ok()) {
            probed.extend(assembled(&deps, &judges, call_cx).await);
        }
        probed
    };
    let (mut probed, _told) = staged(&deps.toolbox, cx, work).await;
    let redactor = redactor(&deps.toolbox);
    for one in &mut probed {
        let (Ok(text) | Err(Failure::Unusable(text) | Failure::Failed(text))) = &mut one.found;
        if let Some(clean) = redactor.redact(text) {
            *text = clean;
        }
    }
    probed
}

async fn sources(deps: &ToolDeps, cx: &CallCx) -> Vec<Probed> {
    let tries = deps
        .toolbox
        .sources
        .iter()
        .map(|(name, source)| async move {
            let began = cx.clock.now();
            let found = patiently(cx, source.probe(cx)).await;
            Probed {
                what: format!("source {name}"),
                name: name.clone(),
                kind: source.kind().to_owned(),
                badge: source.badge(),
                found: found.map_err(Failure::Failed),
                took: cx.clock.now().since(began),
            }
        });
    join_all(tries).await
}

async fn servers(deps: &ToolDeps, judges: &[&JudgeConfig], cx: &CallCx) -> Vec<Probed> {
    let entries = judges.iter().flat_map(|judge| {
        let own = judge.tools.iter().filter(|entry| entry.name == SERVER);
        own.map(|entry| (judge.name.clone(), entry))
    });
    let tries = entries.map(|(judge, entry)| async move {
        let began = cx.clock.now();
        let opened = async {
            let opened = tools::open_single_tool(entry, deps, cx).await;
            opened.map_err(|problems| problems.join("; "))
        };
        let found = patiently(cx, opened).await.map(|set| {
            let names = set.decls().into_iter().map(|decl| decl.name);
            format!("tools: {}", names.collect::<Vec<_>>().join(", "))
        });
        Probed {
            what: format!("server of judge {judge}"),
            name: judge,
            kind: SERVER.to_owned(),
            badge: None,
            found: found.map_err(Failure::Failed),
            took: cx.clock.now().since(began),
        }
    });
    join_all(tries).await
}

/// The judges whose tools do not go together, or whose tokens are not valid.
async fn assembled(deps: &ToolDeps, judges: &[&JudgeConfig], cx: &CallCx) -> Vec<Probed> {
    let known = tools::built_in_tool_decls();
    let built_in = |entry: &JudgeTool| known.iter().any(|decl| decl.name == entry.name);
    let asked = judges
        .iter()
        .filter(|judge| !judge.tools.iter().all(built_in));
    let tries = asked.map(|judge| async move {
        let began = cx.clock.now();
        let opened = async {
            let opened = tools::open_tools(&judge.tools, deps, cx).await;
            opened.map_err(|problems| problems.join("; "))
        };
        let why = patiently(cx, opened).await.err()?;
        Some(Probed {
            what: format!("tools of judge {}", judge.name),
            name: judge.name.clone(),
            kind: "tools".to_owned(),
            badge: None,
            found: Err(Failure::Unusable(why)),
            took: cx.clock.now().since(began),
        })
    });
    join_all(tries).await.into_iter().flatten().collect()
}

async fn patiently<T>(
    cx: &CallCx,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    tokio::select! {
        done = work => done,
        () = cx.clock.sleep(PATIENCE) => Err(format!("it said nothing within {PATIENCE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(found: Result<&str, Failure>) -> Probed {
        Probed {
            what: "source shop".into(),
            name: "shop".into(),
            kind: "sqlite".into(),
            badge: Some("may write".into()),
            found: found.map(str::to_owned),
            took: Millis(12),
        }
    }

    #[test]
    fn a_source_is_told_with_what_is_there_or_why_not() {
        let well = probed(Ok("SQLite 3.50, 4 tables"));
        assert_eq!(well.unusable(), None);
        assert!(
            well.human().contains("source shop: sqlite\n  ✓"),
            "{}",
            well.human()
        );
        assert!(well.human().contains("may write"));
        let failed = probed(Err(Failure::Failed("no such file".into())));
        assert_eq!(failed.unusable(), Some(false));
        assert_eq!(failed.as_json()["error"], "no such file");
        let unusable = probed(Err(Failure::Unusable("the token is expired".into())));
        assert_eq!(unusable.unusable(), Some(true));
        assert_eq!(unusable.as_json()["usable"], false);
    }
}
