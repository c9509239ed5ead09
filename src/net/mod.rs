//! The only builder of HTTP clients, and the guard on every address that a model or a page names.
//!
//! Owns the ways out, and there is no other. [`ModelClient`] and [`dial`] dial what the user configured, loopback and plain
//! http included. [`Guard`] dials what somebody else named: every hop is judged on its raw text, its parts and every
//! address its name resolves to, and only a judged address is dialled. Both clients refuse proxies from the environment, redirects on their own
//! account, HTTP/2, and timers other than our [`Clock`](crate::clock::Clock).
//!
//! Nobody outside this module names `reqwest`.

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
pub use policy::{AddressPolicy, HostRule, normalize_host};
pub use refusal::{AddressRefusal, GuardRule};
pub use resolve::{Resolver, ResolverOverrides, SystemResolver, parse_resolve_entry};
pub use unverified::unverified_tls_config;
