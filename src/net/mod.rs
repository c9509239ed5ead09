//! The only builder of HTTP clients, and the guard on every address that a model or a page names.
//!
//! Owns the ways out, and there is no other. [`ModelClient`] and [`dial`] dial what the user configured, loopback and plain
//! http included. [`Guard`] dials what somebody else named: every hop is judged on its raw text, its parts and every
//! address its name resolves to, and only a judged address is dialled. Both clients refuse proxies from the environment, redirects on their own
//! account, HTTP/2, and timers other than our [`Clock`](crate::clock::Clock).
//!
//! Nobody outside this module names `reqwest`.

mod address;
mod asking;
mod body;
mod dial;
mod error;
mod guard;
mod model;
mod page;
mod pinned;
mod policy;
mod refusal;
mod resolve;
mod tls;
mod wait;

pub use address::{is_own, unwrap_embedded, why_closed};
pub use asking::{Asking, is_of_connection};
pub use body::Body;
#[cfg(unix)]
pub use dial::dial_unix;
pub use dial::{dial, dial_tls};
pub use error::{NetError, Wait};
pub use guard::{FetchError, FetchLimits, Guard, HopSink};
pub use model::{ModelClient, ReplyLimits, Response};
pub use page::{Chunks, Page};
pub use policy::{HostRule, Policy, host_name};
pub use refusal::{Refusal, Rule};
pub use resolve::{Overrides, Resolver, SystemResolver, parse_resolve};
pub(crate) use wait::within;
