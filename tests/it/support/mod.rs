//! What tests stand on: servers that speak the protocols and misbehave on command.

pub(crate) mod tls;
pub(crate) mod wire;
