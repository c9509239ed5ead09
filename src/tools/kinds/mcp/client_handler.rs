//! The client side of the MCP session: how servers see dicta, and how dicta shows their names.

use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::{ClientHandler, RoleClient};

use crate::model::make_visible;

/// The client that servers see. It offers no capabilities.
#[derive(Debug, Clone, Copy)]
pub(super) struct McpClientHandler;

impl ClientHandler for McpClientHandler {
    fn get_info(&self) -> ClientConfig {
        let ours = Implementation::new("dicta", env!("CARGO_PKG_VERSION"));
        let mut info = ClientConfig::new(ClientCapabilities::default(), ours);
        info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        info
    }

    // rmcp refuses sampling and declines elicitation by itself, but lists roots even though the client does not
    // announce them.
    #[expect(deprecated, reason = "servers of today's versions still ask for roots")]
    async fn list_roots(
        &self,
        _context: rmcp::service::RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, rmcp::ErrorData> {
        Err(rmcp::ErrorData::method_not_found::<
            rmcp::model::ListRootsRequestMethod,
        >())
    }
}

/// Shortens a text of a server for display.
pub(super) fn shorten_text(text: &str) -> String {
    const LONGEST: usize = 100;
    let mut text = make_visible(text, false).into_owned();
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}
