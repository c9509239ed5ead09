//! The only builder of HTTP clients, and the guard for every address that a model or a page names.
//!
//! Responsible for all network connections except those of MCP processes. The clients [`LlmClient`] and [`dial`] dial
//! the addresses that the user configured, loopback and plain http included. The [`AddressGuard`] dials addresses
//! that others named. It checks the raw text, the parts and every address of each hop, and dials only a checked
//! address.
//!
//! [`LlmClient`] uses hyper's client, because it must know whether a reused connection answered. Both HTTP clients refuse proxies from the environment, automatic redirects, HTTP/2, and timers other than dicta's
//! [`Clock`](crate::clock::Clock).
//!
//! Only this module uses `reqwest` and `hyper-util`. Does not know any provider or page format.

mod address;
mod body;
mod deadline;
mod dial;
mod error;
mod fetch;
mod guard;
mod guarded_request;
mod llm;
mod page;
mod pinned_client;
mod policy;
mod refusal;
mod resolve;
mod tls;
mod unverified;
mod watched_connection;

pub use address::{find_closed_range, is_own_address, unwrap_embedded_ipv4};
pub use body::FetchedBody;
#[cfg(unix)]
pub use dial::dial_unix;
pub use dial::{dial, dial_tls_config};
pub use error::{NetError, WaitPhase};
pub use fetch::{FetchError, FetchLimits};
pub use guard::{AddressGuard, HopObserver};
pub use guarded_request::{GuardedRequest, is_connection_header};
pub use llm::{LlmClient, LlmResponse, ReplyLimits};
pub use page::{BodyStream, FetchReply};
pub use policy::{AddressPolicy, HostRule, HostSyntaxError, normalize_host};
pub use refusal::{GuardRule, HopRefusal};
pub use resolve::{
    HostOverride, OverridingResolver, Resolver, SystemResolver, parse_resolve_entry,
};
pub use tls::TlsConfigError;
pub use unverified::unverified_tls_config;
