//! The demo's hosts on a TLS server of loopback (`tests/it/support/tls.rs`).

use std::net::{IpAddr, Ipv4Addr};

use crate::pages::{self, Page};
use crate::support::tls::{Request, Response, TlsServer};

/// Judges may open no other port.
const HTTPS: u16 = 443;
/// Not 127.0.0.1, where a server of the machine's own may listen.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 77);

/// The server; stops when dropped.
pub(crate) struct Web {
    hosts: Vec<String>,
    ca_pem: String,
    _server: TlsServer,
}

impl Web {
    /// The hosts it answers for.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The authority a judge's `ca_file` holds.
    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The values that `--resolve` would have.
    pub(crate) fn resolve(&self) -> Vec<dicta::net::HostOverride> {
        let entry = |host: &String| dicta::net::HostOverride {
            host: host.clone(),
            port: HTTPS,
            address: IpAddr::from(ADDRESS),
        };
        self.hosts.iter().map(entry).collect()
    }
}

/// Starts it. Panics with a sentence where the port may not be taken.
pub(crate) fn serve(pages: Vec<Page>) -> Web {
    let hosts = pages::hosts(&pages);
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let answer = move |request: &Request| respond(&pages, request);
    let server = TlsServer::at((ADDRESS, HTTPS).into(), &names, answer).unwrap_or_else(|why| {
        panic!("cannot listen on {ADDRESS}:{HTTPS} ({why}); run as root, or allow it: sysctl net.ipv4.ip_unprivileged_port_start=443")
    });
    let ca_pem = std::fs::read_to_string(server.ca_file()).expect("it was just written");
    Web {
        hosts,
        ca_pem,
        _server: server,
    }
}

fn respond(pages: &[Page], request: &Request) -> Response {
    let is_asked = |page: &&Page| page.host == request.host && page.path == request.path;
    let Some(page) = pages.iter().find(is_asked) else {
        return Response::status(404).body("no such page in the demo");
    };
    let response = Response::status(page.status).header("content-type", page.content_type);
    let response = match &page.location {
        Some(to) => response.header("location", to),
        None => response,
    };
    response.body(page.body.as_str())
}
