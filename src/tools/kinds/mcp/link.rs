//! The connection to one server: opened on first need, shared by all cells, opened again when it is gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as Plain, PoisonError};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ErrorCode, JsonObject,
    ListToolsRequest, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerResult, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle,
};
use rmcp::{RoleClient, ServiceError};
use tokio::sync::Mutex;

use super::asked::{Asked, Waited};
use super::failure::Failure;
use super::guarded::{Guarded, guard};
use super::http::{Client, Way, transport};
use super::ledger::Ledger;
use super::settings::{Place, Settings};
use super::stdio::{self, Notes};
use super::us::{Us, short};
use crate::clock::{BoxFuture, Clock};
use crate::event::{CallCx, Redactor, ToolFact};
use crate::model::{CallIx, Hop, make_visible};
use crate::net::{Resolver, with_timeout};

/// Of a list of tools, so many are asked for.
pub(super) const MAX_TOOLS: usize = 200;
/// Of its pages, so many.
const MAX_PAGES: usize = 50;
/// A judge that names such a server believes that it has tools.
const NO_TOOLS: &str = "it has no tools";
/// Of an error's text, so much is passed on.
const MAX_ERROR: usize = 2000;

/// An open connection.
struct Open {
    service: RunningService<RoleClient, Us>,
    /// Of a program.
    notes: Option<Arc<Notes>>,
    ledger: Arc<Ledger>,
}

impl Open {
    fn is_dead(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    async fn notes(&self, dead: bool) -> String {
        match &self.notes {
            Some(notes) => notes.told(dead).await,
            None => String::new(),
        }
    }
}

/// One server, connected or not.
pub(super) struct Link {
    /// The source's name.
    pub(super) name: String,
    pub(super) settings: Settings,
    resolver: Arc<dyn Resolver>,
    redactor: Redactor,
    open: Mutex<Option<Arc<Open>>>,
    /// Which tools say that they change nothing; known once they were listed.
    hints: Plain<HashMap<String, bool>>,
    /// Stands in for the guard.
    #[cfg(test)]
    pub(super) way: Option<Arc<dyn Way>>,
}

impl Link {
    pub(super) fn new(name: &str, settings: Settings, resolver: Arc<dyn Resolver>) -> Self {
        let secrets = settings.secrets();
        Self {
            name: name.to_owned(),
            redactor: Redactor::new(secrets.iter().map(String::as_str)),
            settings,
            resolver,
            open: Mutex::default(),
            hints: Plain::default(),
            #[cfg(test)]
            way: None,
        }
    }

    /// Whether a tool said that it changes nothing. Silence is no promise.
    pub(super) fn says_read_only(&self, tool: &str) -> bool {
        let hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        hints.get(tool).copied().unwrap_or(false)
    }

    /// A failure as everybody may see it: with the source's name, short, without secrets, on one line.
    fn said(&self, mut failure: Failure) -> Failure {
        let mut text = make_visible(&failure.text, false).into_owned();
        if text.len() > MAX_ERROR {
            text.truncate(text.floor_char_boundary(MAX_ERROR));
            text.push('…');
        }
        let text = self.redactor.redact(&text).unwrap_or(text);
        failure.text = format!("MCP server `{}`: {text}", self.name);
        failure
    }

    /// The connection, opened if there is none that lives.
    async fn opened(&self, clock: &Arc<dyn Clock>) -> Result<Arc<Open>, Failure> {
        let mut slot = self.open.lock().await;
        if let Some(open) = slot.as_ref().filter(|open| !open.is_dead()) {
            return Ok(Arc::clone(open));
        }
        *slot = None;
        let open = Arc::new(self.connect(clock).await?);
        *slot = Some(Arc::clone(&open));
        Ok(open)
    }

    /// Shakes hands as every server of today does; one that says no to that is asked once more in the words of 2026-07-28,
    /// which knows no handshake.
    async fn connect(&self, clock: &Arc<dyn Clock>) -> Result<Open, Failure> {
        let first = match self.attempt(clock, ClientLifecycleMode::Initialize).await {
            Ok(open) => return Ok(open),
            Err(Unopened::Spoke(failure)) => failure,
            Err(Unopened::Other(failure)) => return Err(failure),
        };
        let modern = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::LATEST],
        };
        self.attempt(clock, modern).await.map_err(|_| first)
    }

    async fn attempt(
        &self,
        clock: &Arc<dyn Clock>,
        mode: ClientLifecycleMode,
    ) -> Result<Open, Unopened> {
        let ledger = Arc::new(Ledger::default());
        let limit = self.settings.start;
        let (served, notes) = match &self.settings.place {
            Place::Program(program) => {
                let (stdio, notes) = stdio::start(program).map_err(Unopened::Other)?;
                let serving: Serving<'_> = Box::pin(serve_client_with_lifecycle(Us, stdio, mode));
                (with_timeout(&**clock, limit, serving).await, Some(notes))
            }
            Place::Endpoint(endpoint) => {
                let client = Client {
                    way: self.way(clock),
                    headers: endpoint.headers.clone().into(),
                    ledger: Arc::clone(&ledger),
                };
                let transport = transport(client, endpoint.url.as_str());
                let serving: Serving<'_> =
                    Box::pin(serve_client_with_lifecycle(Us, transport, mode));
                let shaken = async {
                    tokio::select! {
                        biased;
                        served = serving => Some(served),
                        () = ledger.lost(None) => None,
                    }
                };
                match with_timeout(&**clock, limit, shaken).await {
                    Some(None) => {
                        let why = ledger.take_any();
                        let gone = || Failure::transient("it does not take the handshake");
                        return Err(Unopened::Other(why.unwrap_or_else(gone)));
                    }
                    served => (served.flatten(), None),
                }
            }
        };
        let failed = match served {
            Some(Ok(service)) => {
                return Ok(Open {
                    service,
                    notes,
                    ledger,
                });
            }
            Some(Err(error)) => error,
            None => {
                let told = match &notes {
                    Some(notes) => notes.told(false).await,
                    None => String::new(),
                };
                let why = format!("no handshake after {limit} (`startTimeout` gives it longer)");
                return Err(Unopened::Other(Failure::transient(why).and(&told)));
            }
        };
        let spoke = matches!(failed, ClientInitializeError::JsonRpcError(_));
        let failure = ledger.take_any().unwrap_or_else(|| unshaken(&failed));
        let told = match &notes {
            Some(notes) => notes.told(!spoke).await,
            None => String::new(),
        };
        let failure = failure.and(&told);
        Err(if spoke {
            Unopened::Spoke(failure)
        } else {
            Unopened::Other(failure)
        })
    }

    fn way(&self, clock: &Arc<dyn Clock>) -> Arc<dyn Way> {
        #[cfg(test)]
        if let Some(way) = &self.way {
            return Arc::clone(way);
        }
        let Place::Endpoint(endpoint) = &self.settings.place else {
            unreachable!("a program is not reached over HTTP")
        };
        let guard = guard(endpoint, Arc::clone(&self.resolver));
        Arc::new(Guarded::new(guard, &self.settings, Arc::clone(clock)))
    }

    /// What the server is called, and which version it speaks.
    pub(super) async fn described(&self, clock: &Arc<dyn Clock>) -> Result<String, Failure> {
        let open = self.opened(clock).await.map_err(|f| self.said(f))?;
        let info = open.service.peer_info();
        let name = info.as_ref().and_then(|info| info.server_info.as_ref());
        let name = name.map_or_else(
            || "a server without a name".to_owned(),
            |us| format!("{} {}", short(&us.name), short(&us.version)),
        );
        let version = info.map_or_else(
            || "an unknown version".to_owned(),
            |i| short(&i.protocol_version.to_string()),
        );
        Ok(format!("{name}, MCP {version}"))
    }

    /// Its tools, as far as they are allowed or fit.
    pub(super) async fn tools(&self, cx: &CallCx) -> Result<Vec<Tool>, Failure> {
        let listed = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(Failure::lasting("cancelled")),
            listed = self.list(&cx.clock) => listed,
        };
        let tools = listed.map_err(|f| self.said(f))?;
        let mut hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        hints.clear();
        for tool in &tools {
            let hint = tool.annotations.as_ref().and_then(|a| a.read_only_hint);
            hints.insert(tool.name.to_string(), hint.unwrap_or(false));
        }
        drop(hints);
        Ok(tools)
    }

    async fn list(&self, clock: &Arc<dyn Clock>) -> Result<Vec<Tool>, Failure> {
        let open = self.opened(clock).await?;
        let limit = self.settings.start;
        if let Some(listed) = with_timeout(&**clock, limit, self.pages(&open)).await {
            return listed;
        }
        let why = format!("no list of tools after {limit} (`startTimeout` gives it longer)");
        Err(Failure::transient(why).and(&open.notes(false).await))
    }

    async fn pages(&self, open: &Open) -> Result<Vec<Tool>, Failure> {
        let wanted = |tool: &Tool| {
            let allow = self.settings.allow.as_ref();
            allow.is_none_or(|allow| allow.iter().any(|name| *name == tool.name))
        };
        let (mut tools, mut others) = (Vec::new(), Vec::new());
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = self.page(open, params).await?;
            for tool in page.tools {
                if wanted(&tool) {
                    tools.push(tool);
                } else if others.len() < MAX_TOOLS {
                    others.push(short(&tool.name));
                }
            }
            if tools.len() > MAX_TOOLS {
                let why =
                    format!("it has more than {MAX_TOOLS} tools: name the ones wanted in `allow`");
                return Err(Failure::lasting(why));
            }
            // One that points to itself would go on for ever.
            if page.next_cursor.is_none() || page.next_cursor == cursor {
                return self.all_allowed(tools, &others);
            }
            cursor = page.next_cursor;
        }
        Err(Failure::lasting(format!(
            "its list of tools has more than {MAX_PAGES} pages"
        )))
    }

    async fn page(
        &self,
        open: &Open,
        params: PaginatedRequestParams,
    ) -> Result<ListToolsResult, Failure> {
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let mut asked = match Asked::send(open.service.peer(), request, &open.ledger).await {
            Ok(asked) => asked,
            Err(error) => return Err(self.broken(open, error, None).await),
        };
        let waited = asked.wait().await;
        let (_, failed) = open.ledger.take(&asked.id);
        match (waited, failed) {
            (Waited::Replied(Ok(ServerResult::ListToolsResult(page))), _) => Ok(page),
            (Waited::Replied(Err(ServiceError::McpError(error))), _)
                if error.code == ErrorCode::METHOD_NOT_FOUND =>
            {
                Err(Failure::lasting(NO_TOOLS))
            }
            (_, Some(failure)) => Err(failure),
            (Waited::Replied(Err(error)), None) => Err(self.broken(open, error, None).await),
            (Waited::Replied(Ok(_)) | Waited::Lost, None) => {
                Err(Failure::lasting("its reply is not what was asked for"))
            }
        }
    }

    /// Every name of `allow` must be a tool.
    fn all_allowed(&self, tools: Vec<Tool>, others: &[String]) -> Result<Vec<Tool>, Failure> {
        let Some(allow) = &self.settings.allow else {
            let none = tools.is_empty();
            return if none {
                Err(Failure::lasting(NO_TOOLS))
            } else {
                Ok(tools)
            };
        };
        let unknown: Vec<String> = allow
            .iter()
            .filter(|name| !tools.iter().any(|tool| tool.name == name.as_str()))
            .map(
                |name| match crate::diag::find_nearest(name, others.iter().map(String::as_str)) {
                    Some(near) => format!("`{name}` (did you mean `{near}`?)"),
                    None => format!("`{name}`"),
                },
            )
            .collect();
        if unknown.is_empty() {
            return Ok(tools);
        }
        let mut has: Vec<String> = tools.iter().map(|tool| short(&tool.name)).collect();
        has.extend_from_slice(others);
        has.sort();
        let has = if has.is_empty() {
            "none".to_owned()
        } else {
            has.join(", ")
        };
        let why = format!(
            "`allow` names unknown tools: {}; it has {has}",
            unknown.join(", ")
        );
        Err(Failure::lasting(why))
    }

    /// Calls a tool. A connection that turns out to be gone before the call was sent is opened once more.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        call: CallIx,
        cx: &CallCx,
    ) -> Result<CallToolResult, Failure> {
        let mut again = true;
        loop {
            let opening = self.opened(&cx.clock);
            let open = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(self.said(Failure::lasting("cancelled"))),
                open = opening => open.map_err(|f| self.said(f))?,
            };
            let params =
                CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            match Asked::send(open.service.peer(), request, &open.ledger).await {
                Err(_) if again => again = false,
                Err(error) => return Err(self.said(self.broken(&open, error, None).await)),
                Ok(asked) => {
                    let (ended, hops) = self.answer(&open, asked, cx).await;
                    for hop in hops {
                        cx.emit_tool_fact(call, ToolFact::Hop(hop)).await;
                    }
                    return ended.map_err(|f| self.said(f));
                }
            }
        }
    }

    async fn answer(
        &self,
        open: &Open,
        mut asked: Asked,
        cx: &CallCx,
    ) -> (Result<CallToolResult, Failure>, Vec<Hop>) {
        let limit = self.settings.timeout;
        // The server is told as `asked` goes, where it still owes an answer.
        let waited = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(Failure::lasting("cancelled")),
            waited = asked.wait() => Ok(waited),
            () = cx.clock.sleep(limit) => Err(Failure::transient(format!("no answer after {limit} (`timeout`)"))),
        };
        let (hops, failed) = open.ledger.take(&asked.id);
        let ended = match (waited, failed) {
            (Ok(Waited::Replied(Ok(result))), _) => final_result(result),
            (Ok(_), Some(failure)) => Err(failure),
            (Ok(Waited::Replied(Err(error))), None) => {
                let when = Some("while it was answering");
                Err(self.broken(open, error, when).await)
            }
            (Ok(Waited::Lost), None) => {
                Err(Failure::transient("it is gone while it was answering"))
            }
            (Err(late), Some(before)) => Err(late.and("; before: ").and(&before.text)),
            (Err(late), None) => Err(late),
        };
        (ended, hops)
    }

    /// An error of the service in words for people.
    async fn broken(&self, open: &Open, error: ServiceError, when: Option<&str>) -> Failure {
        match error {
            ServiceError::McpError(error) => {
                Failure::lasting(format!("{} (error {})", error.message, error.code.0))
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let failed = open.ledger.take_any();
                let when = when.map(|w| format!(" {w}")).unwrap_or_default();
                let gone = Failure::transient(format!("it is gone{when}"));
                failed.unwrap_or(gone).and(&open.notes(true).await)
            }
            ServiceError::UnexpectedResponse => {
                Failure::lasting("its reply is not what was asked for")
            }
            other => Failure::lasting(other.to_string()),
        }
    }
}

type Serving<'a> = BoxFuture<'a, Result<RunningService<RoleClient, Us>, ClientInitializeError>>;

/// Why there is no connection.
enum Unopened {
    /// The server answered, and said no.
    Spoke(Failure),
    Other(Failure),
}

fn unshaken(error: &ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::JsonRpcError(error) => Failure::lasting(format!(
            "it refuses the handshake: {} (error {})",
            error.message, error.code.0
        )),
        ClientInitializeError::ConnectionClosed(_) => Failure::transient(
            "it ended before the handshake (is it an MCP server over standard input and output?)",
        ),
        ClientInitializeError::TransportError { .. } => {
            Failure::transient("it does not take the handshake")
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            Failure::lasting("it speaks no version of MCP that dicta speaks")
        }
        _ => Failure::lasting("its handshake is not MCP's"),
    }
}

fn final_result(result: ServerResult) -> Result<CallToolResult, Failure> {
    match result {
        ServerResult::CallToolResult(result) => Ok(result),
        ServerResult::InputRequiredResult(_) => Err(Failure::lasting(
            "it wants to ask a person something, and a judge's tool has none",
        )),
        ServerResult::CreateTaskResult(_) => Err(Failure::lasting(
            "it made a task of the call, which is not supported",
        )),
        _ => Err(Failure::lasting("its reply is not what was asked for")),
    }
}
