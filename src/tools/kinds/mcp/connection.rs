//! The connection to one server: opened on demand, shared by all cells, and opened again after it was lost.

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

use super::client_handler::{McpClientHandler, shorten_text};
use super::config::{McpAddress, McpConfig};
use super::failure::McpFailure;
use super::guarded_sender::{GuardedSender, build_guard};
use super::http::{McpHttpClient, McpHttpSender, new_transport};
use super::pending_request::{PendingRequest, RequestOutcome};
use super::request_tracker::RequestTracker;
use super::stdio::{self, ProcessNotes};
use crate::clock::{BoxFuture, Clock, with_timeout};
use crate::event::{CallCx, Redactor, ToolFact};
use crate::model::{CallIx, Hop, make_visible};
use crate::net::Resolver;

/// The limit of tools that dicta takes from a server's list.
pub(super) const MAX_TOOLS: usize = 200;
/// The limit of pages of a server's list.
const MAX_PAGES: usize = 50;
/// The failure of a server without tools. It is a failure because a judge that names the server expects tools.
const NO_TOOLS_MESSAGE: &str = "it has no tools";
/// The length at which an error's text is cut, in characters.
const MAX_ERROR: usize = 2000;

/// An open connection.
struct McpConnection {
    service: RunningService<RoleClient, McpClientHandler>,
    /// The notes about the server's process, if it is a program.
    notes: Option<Arc<ProcessNotes>>,
    tracker: Arc<RequestTracker>,
}

impl McpConnection {
    fn is_dead(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    async fn describe_process(&self, dead: bool) -> String {
        match &self.notes {
            Some(notes) => notes.describe_end(dead).await,
            None => String::new(),
        }
    }
}

/// One server, connected or not.
pub(super) struct McpServer {
    /// The source's name.
    pub(super) name: String,
    pub(super) config: McpConfig,
    resolver: Arc<dyn Resolver>,
    redactor: Redactor,
    connection: Mutex<Option<Arc<McpConnection>>>,
    /// The tools' `readOnlyHint` by name, known after the tools were listed.
    read_only_hints: Plain<HashMap<String, bool>>,
    /// Replaces the address guard.
    #[cfg(test)]
    pub(super) way: Option<Arc<dyn McpHttpSender>>,
}

impl McpServer {
    pub(super) fn new(name: &str, config: McpConfig, resolver: Arc<dyn Resolver>) -> Self {
        let secrets = config.secrets();
        Self {
            name: name.to_owned(),
            redactor: Redactor::new(secrets.iter().map(String::as_str)),
            config,
            resolver,
            connection: Mutex::default(),
            read_only_hints: Plain::default(),
            #[cfg(test)]
            way: None,
        }
    }

    /// Returns true if a tool declares that it changes nothing. A tool without the annotation may change data.
    pub(super) fn says_read_only(&self, tool: &str) -> bool {
        let hints = self
            .read_only_hints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        hints.get(tool).copied().unwrap_or(false)
    }

    /// Converts a failure for display: with the source's name, cut, without secrets, on one line.
    fn qualify_failure(&self, mut failure: McpFailure) -> McpFailure {
        // The server's text is untrusted: control characters and its length must not disturb a terminal.
        let mut text = make_visible(&failure.text, false).into_owned();
        // Redact before the cut, which could leave the beginning of a secret.
        if let Some(clean) = self.redactor.redact(&text) {
            text = clean;
        }
        if text.len() > MAX_ERROR {
            text.truncate(text.floor_char_boundary(MAX_ERROR));
            text.push('…');
        }
        failure.text = format!("MCP server `{}`: {text}", self.name);
        failure
    }

    /// Returns the connection, and opens it if there is none or it was lost.
    async fn get_connection(
        &self,
        clock: &Arc<dyn Clock>,
    ) -> Result<Arc<McpConnection>, McpFailure> {
        // The lock is held while connecting, so that parallel cells share one connection instead of starting a
        // server each.
        let mut slot = self.connection.lock().await;
        if let Some(open) = slot.as_ref().filter(|open| !open.is_dead()) {
            return Ok(Arc::clone(open));
        }
        // Drop the lost connection, and with it its process, even if connecting fails below.
        *slot = None;
        let open = Arc::new(self.connect(clock).await?);
        *slot = Some(Arc::clone(&open));
        Ok(open)
    }

    /// Connects with the `initialize` handshake, which almost every server supports. If the server refuses it, tries
    /// the protocol of 2026-07-28, which has no handshake.
    async fn connect(&self, clock: &Arc<dyn Clock>) -> Result<McpConnection, McpFailure> {
        let first = match self
            .try_connect(clock, ClientLifecycleMode::Initialize)
            .await
        {
            Ok(open) => return Ok(open),
            Err(McpConnectError::Refused(failure)) => failure,
            Err(McpConnectError::Other(failure)) => return Err(failure),
        };
        // A server that only speaks a newer protocol version refuses the old handshake.
        let modern = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::LATEST],
        };
        // Both handshakes failed; the first failure is reported.
        self.try_connect(clock, modern).await.map_err(|_| first)
    }

    async fn try_connect(
        &self,
        clock: &Arc<dyn Clock>,
        mode: ClientLifecycleMode,
    ) -> Result<McpConnection, McpConnectError> {
        let tracker = Arc::new(RequestTracker::default());
        let limit = self.config.start_timeout;
        // The transport and the handshake, within one time limit.
        let (session, notes) = match &self.config.address {
            McpAddress::Program(program) => {
                let (stdio, notes) =
                    stdio::start_program(program).map_err(McpConnectError::Other)?;
                let handshake_future: HandshakeFuture<'_> =
                    Box::pin(serve_client_with_lifecycle(McpClientHandler, stdio, mode));
                (
                    with_timeout(&**clock, limit, handshake_future).await,
                    Some(notes),
                )
            }
            McpAddress::Endpoint(endpoint) => {
                let client = McpHttpClient {
                    sender: self.new_sender(clock),
                    headers: endpoint.headers.clone().into(),
                    tracker: Arc::clone(&tracker),
                };
                let transport = new_transport(client, endpoint.url.as_str());
                let handshake_future: HandshakeFuture<'_> = Box::pin(serve_client_with_lifecycle(
                    McpClientHandler,
                    transport,
                    mode,
                ));
                // rmcp waits for the time limit if the reply's stream breaks; the tracker reports that at once.
                let handshake = async {
                    tokio::select! {
                        biased;
                        session = handshake_future => Some(session),
                        () = tracker.wait_until_lost(None) => None,
                    }
                };
                match with_timeout(&**clock, limit, handshake).await {
                    Some(None) => {
                        let why = tracker.take_any_failure();
                        let default_failure =
                            || McpFailure::transient("it does not take the handshake");
                        return Err(McpConnectError::Other(why.unwrap_or_else(default_failure)));
                    }
                    session => (session.flatten(), None),
                }
            }
        };
        // The result of the handshake: a session, an error, or no reply in time.
        let failed = match session {
            Some(Ok(service)) => {
                return Ok(McpConnection {
                    service,
                    notes,
                    tracker,
                });
            }
            Some(Err(error)) => error,
            None => {
                let suffix = match &notes {
                    Some(notes) => notes.describe_end(false).await,
                    None => String::new(),
                };
                let why = format!("no handshake after {limit} (`startTimeout` gives it longer)");
                return Err(McpConnectError::Other(
                    McpFailure::transient(why).with_suffix(&suffix),
                ));
            }
        };
        // Only a JSON-RPC error proves that the server speaks MCP, so only then is another protocol worth a try.
        let was_refused = matches!(failed, ClientInitializeError::JsonRpcError(_));
        // The HTTP layer knows the cause; rmcp reports only that the transport failed.
        let failure = tracker
            .take_any_failure()
            .unwrap_or_else(|| explain_handshake_error(&failed));
        let suffix = match &notes {
            Some(notes) => notes.describe_end(!was_refused).await,
            None => String::new(),
        };
        let failure = failure.with_suffix(&suffix);
        Err(if was_refused {
            McpConnectError::Refused(failure)
        } else {
            McpConnectError::Other(failure)
        })
    }

    fn new_sender(&self, clock: &Arc<dyn Clock>) -> Arc<dyn McpHttpSender> {
        #[cfg(test)]
        if let Some(way) = &self.way {
            return Arc::clone(way);
        }
        let McpAddress::Endpoint(endpoint) = &self.config.address else {
            unreachable!("a program is not reached over HTTP")
        };
        let guard = build_guard(endpoint, Arc::clone(&self.resolver));
        Arc::new(GuardedSender::new(guard, &self.config, Arc::clone(clock)))
    }

    /// Returns the server's name and protocol version.
    pub(super) async fn describe_server(
        &self,
        clock: &Arc<dyn Clock>,
    ) -> Result<String, McpFailure> {
        let open = self
            .get_connection(clock)
            .await
            .map_err(|f| self.qualify_failure(f))?;
        let info = open.service.peer_info();
        let name = info.as_ref().and_then(|info| info.server_info.as_ref());
        let name = name.map_or_else(
            || "a server without a name".to_owned(),
            |server| {
                format!(
                    "{} {}",
                    shorten_text(&server.name),
                    shorten_text(&server.version)
                )
            },
        );
        let version = info.map_or_else(
            || "an unknown version".to_owned(),
            |i| shorten_text(&i.protocol_version.to_string()),
        );
        Ok(format!("{name}, MCP {version}"))
    }

    /// Lists the server's tools that `allow` admits.
    pub(super) async fn list_tools(&self, cx: &CallCx) -> Result<Vec<Tool>, McpFailure> {
        // Cancellation first, so that an ended run does not wait for a slow server.
        let listed = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(McpFailure::permanent("cancelled")),
            listed = self.list_within_timeout(&cx.clock) => listed,
        };
        let tools = listed.map_err(|f| self.qualify_failure(f))?;
        // Replace all hints: a server may have changed its tools since the last list.
        let mut hints = self
            .read_only_hints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        hints.clear();
        for tool in &tools {
            let hint = tool.annotations.as_ref().and_then(|a| a.read_only_hint);
            hints.insert(tool.name.to_string(), hint.unwrap_or(false));
        }
        drop(hints);
        Ok(tools)
    }

    async fn list_within_timeout(&self, clock: &Arc<dyn Clock>) -> Result<Vec<Tool>, McpFailure> {
        let open = self.get_connection(clock).await?;
        let limit = self.config.start_timeout;
        if let Some(listed) = with_timeout(&**clock, limit, self.list_all_pages(&open)).await {
            return listed;
        }
        let why = format!("no list of tools after {limit} (`startTimeout` gives it longer)");
        Err(McpFailure::transient(why).with_suffix(&open.describe_process(false).await))
    }

    async fn list_all_pages(&self, open: &McpConnection) -> Result<Vec<Tool>, McpFailure> {
        let is_allowed = |tool: &Tool| {
            let allow = self.config.allow.as_ref();
            allow.is_none_or(|allow| allow.iter().any(|name| *name == tool.name))
        };
        // A list with a limit of pages and tools: a server may send pages without end.
        let (mut tools, mut others) = (Vec::new(), Vec::new());
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = self.list_page(open, params).await?;
            for tool in page.tools {
                if is_allowed(&tool) {
                    tools.push(tool);
                // The other names serve only suggestions in an error message, so a hostile list need not be kept
                // whole.
                } else if others.len() < MAX_TOOLS {
                    others.push(shorten_text(&tool.name));
                }
            }
            if tools.len() > MAX_TOOLS {
                let why =
                    format!("it has more than {MAX_TOOLS} tools: name the ones wanted in `allow`");
                return Err(McpFailure::permanent(why));
            }
            // A page that points to itself would continue forever.
            if page.next_cursor.is_none() || page.next_cursor == cursor {
                return self.check_allowed_exist(tools, &others);
            }
            cursor = page.next_cursor;
        }
        Err(McpFailure::permanent(format!(
            "its list of tools has more than {MAX_PAGES} pages"
        )))
    }

    async fn list_page(
        &self,
        open: &McpConnection,
        params: PaginatedRequestParams,
    ) -> Result<ListToolsResult, McpFailure> {
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let mut pending =
            match PendingRequest::send(open.service.peer(), request, &open.tracker).await {
                Ok(pending) => pending,
                Err(error) => return Err(self.explain_service_error(open, error, None).await),
            };
        let outcome = pending.await_reply().await;
        // The request's entry must leave the tracker, whatever the reply is.
        let (_, failed) = open.tracker.take_request(&pending.id);
        match (outcome, failed) {
            (RequestOutcome::Replied(Ok(ServerResult::ListToolsResult(page))), _) => Ok(page),
            // A server without tools may lack the method instead of returning an empty list.
            (RequestOutcome::Replied(Err(ServiceError::McpError(error))), _)
                if error.code == ErrorCode::METHOD_NOT_FOUND =>
            {
                Err(McpFailure::permanent(NO_TOOLS_MESSAGE))
            }
            (_, Some(failure)) => Err(failure),
            (RequestOutcome::Replied(Err(error)), None) => {
                Err(self.explain_service_error(open, error, None).await)
            }
            (RequestOutcome::Replied(Ok(_)) | RequestOutcome::Lost, None) => {
                Err(McpFailure::permanent("its reply is not what was asked for"))
            }
        }
    }

    /// Checks that every name of `allow` is a tool.
    fn check_allowed_exist(
        &self,
        tools: Vec<Tool>,
        others: &[String],
    ) -> Result<Vec<Tool>, McpFailure> {
        let Some(allow) = &self.config.allow else {
            let none = tools.is_empty();
            return if none {
                Err(McpFailure::permanent(NO_TOOLS_MESSAGE))
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
        let mut available: Vec<String> =
            tools.iter().map(|tool| shorten_text(&tool.name)).collect();
        available.extend_from_slice(others);
        available.sort();
        let available = if available.is_empty() {
            "none".to_owned()
        } else {
            available.join(", ")
        };
        let why = format!(
            "`allow` names unknown tools: {}; it has {available}",
            unknown.join(", ")
        );
        Err(McpFailure::permanent(why))
    }

    /// Calls a tool. Connects again once if the connection was lost before the call was sent.
    pub(super) async fn call_tool(
        &self,
        tool: &str,
        arguments: JsonObject,
        call: CallIx,
        cx: &CallCx,
    ) -> Result<CallToolResult, McpFailure> {
        // One more try: the server may have closed an idle connection.
        let mut again = true;
        loop {
            let opening = self.get_connection(&cx.clock);
            let open = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(self.qualify_failure(McpFailure::permanent("cancelled"))),
                open = opening => open.map_err(|f| self.qualify_failure(f))?,
            };
            let params =
                CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            match PendingRequest::send(open.service.peer(), request, &open.tracker).await {
                // The request was not sent, so trying it on a new connection cannot run the tool twice.
                Err(_) if again => again = false,
                Err(error) => {
                    return Err(
                        self.qualify_failure(self.explain_service_error(&open, error, None).await)
                    );
                }
                Ok(pending) => {
                    let (ended, hops) = self.await_call_result(&open, pending, cx).await;
                    // The hops are emitted even if the call failed, because a failed request left the machine
                    // as well.
                    for hop in hops {
                        cx.emit_tool_fact(call, ToolFact::Hop(hop)).await;
                    }
                    return ended.map_err(|f| self.qualify_failure(f));
                }
            }
        }
    }

    async fn await_call_result(
        &self,
        open: &McpConnection,
        mut pending: PendingRequest,
        cx: &CallCx,
    ) -> (Result<CallToolResult, McpFailure>, Vec<Hop>) {
        let limit = self.config.timeout;
        // Dropping `pending` cancels the call at the server if the reply is missing.
        let outcome = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(McpFailure::permanent("cancelled")),
            outcome = pending.await_reply() => Ok(outcome),
            () = cx.clock.sleep(limit) => Err(McpFailure::transient(format!("no answer after {limit} (`timeout`)"))),
        };
        let (hops, failed) = open.tracker.take_request(&pending.id);
        let ended = match (outcome, failed) {
            (Ok(RequestOutcome::Replied(Ok(result))), _) => extract_call_result(result),
            (Ok(_), Some(failure)) => Err(failure),
            (Ok(RequestOutcome::Replied(Err(error))), None) => {
                let when = Some("while it was answering");
                Err(self.explain_service_error(open, error, when).await)
            }
            (Ok(RequestOutcome::Lost), None) => {
                Err(McpFailure::transient("it is gone while it was answering"))
            }
            // The time limit is the failure, and an earlier network error is its probable cause.
            (Err(late), Some(before)) => {
                Err(late.with_suffix("; before: ").with_suffix(&before.text))
            }
            (Err(late), None) => Err(late),
        };
        (ended, hops)
    }

    /// Describes an error of rmcp's service.
    async fn explain_service_error(
        &self,
        open: &McpConnection,
        error: ServiceError,
        when: Option<&str>,
    ) -> McpFailure {
        match error {
            ServiceError::McpError(error) => {
                McpFailure::permanent(format!("{} (error {})", error.message, error.code.0))
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let failed = open.tracker.take_any_failure();
                let when = when.map(|w| format!(" {w}")).unwrap_or_default();
                let default_failure = McpFailure::transient(format!("it is gone{when}"));
                failed
                    .unwrap_or(default_failure)
                    .with_suffix(&open.describe_process(true).await)
            }
            ServiceError::UnexpectedResponse => {
                McpFailure::permanent("its reply is not what was asked for")
            }
            other => McpFailure::permanent(other.to_string()),
        }
    }
}

type HandshakeFuture<'a> =
    BoxFuture<'a, Result<RunningService<RoleClient, McpClientHandler>, ClientInitializeError>>;

/// The reason why a connection failed.
enum McpConnectError {
    /// The server replied with an error.
    Refused(McpFailure),
    Other(McpFailure),
}

fn explain_handshake_error(error: &ClientInitializeError) -> McpFailure {
    match error {
        ClientInitializeError::JsonRpcError(error) => McpFailure::permanent(format!(
            "it refuses the handshake: {} (error {})",
            error.message, error.code.0
        )),
        ClientInitializeError::ConnectionClosed(_) => McpFailure::transient(
            "it ended before the handshake (is it an MCP server over standard input and output?)",
        ),
        ClientInitializeError::TransportError { .. } => {
            McpFailure::transient("it does not take the handshake")
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            McpFailure::permanent("it speaks no version of MCP that dicta speaks")
        }
        _ => McpFailure::permanent("its handshake is not MCP's"),
    }
}

fn extract_call_result(result: ServerResult) -> Result<CallToolResult, McpFailure> {
    match result {
        ServerResult::CallToolResult(result) => Ok(result),
        ServerResult::InputRequiredResult(_) => Err(McpFailure::permanent(
            "it wants to ask a person something, and a judge's tool has none",
        )),
        ServerResult::CreateTaskResult(_) => Err(McpFailure::permanent(
            "it made a task of the call, which is not supported",
        )),
        _ => Err(McpFailure::permanent("its reply is not what was asked for")),
    }
}
