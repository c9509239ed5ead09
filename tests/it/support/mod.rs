//! Scripted servers for tests: they speak the protocols of real servers, and fail in the ways that a test chooses.

pub(crate) mod tls;
pub(crate) mod wire;
