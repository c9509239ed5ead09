//! What tests stand on: servers that speak the protocols and misbehave on command.

pub mod tls;
pub mod wire;
