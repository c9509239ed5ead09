//! The demo's hosts on a TLS server of loopback, with a certificate authority made for the occasion.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use crate::pages::{self, Page};

/// Judges may open no other port.
const HTTPS: u16 = 443;
/// Not 127.0.0.1, where a server of the machine's own may listen.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 77);

/// The server; runs until the program ends.
pub(crate) struct Web {
    hosts: Vec<String>,
    ca_pem: String,
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

    /// What `--resolve` would say.
    pub(crate) fn resolve(&self) -> Vec<(String, u16, IpAddr)> {
        let entry = |host: &String| (host.clone(), HTTPS, IpAddr::from(ADDRESS));
        self.hosts.iter().map(entry).collect()
    }
}

/// Starts it. Panics with a sentence where the port may not be taken.
pub(crate) fn serve(pages: Vec<Page>) -> Web {
    let hosts = pages::hosts(&pages);
    let (config, ca_pem) = certificates(&hosts).expect("certificates can be made");
    let listener = TcpListener::bind((ADDRESS, HTTPS)).unwrap_or_else(|why| {
        panic!("cannot listen on {ADDRESS}:{HTTPS} ({why}); run as root, or allow it: sysctl net.ipv4.ip_unprivileged_port_start=443")
    });
    listener.set_nonblocking(true).expect("a plain socket");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(accept(listener, acceptor, Arc::new(pages)));
    });
    Web { hosts, ca_pem }
}

fn certificates(hosts: &[String]) -> Result<(ServerConfig, String), Box<dyn std::error::Error>> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name = DistinguishedName::new();
    authority
        .distinguished_name
        .push(DnType::CommonName, "dicta record-samples");
    let authority_key = KeyPair::generate()?;
    let ca_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new(hosts)?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    Ok((config, ca_pem))
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, pages: Arc<Vec<Page>>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a plain socket");
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, pages) = (acceptor.clone(), Arc::clone(&pages));
        tokio::spawn(async move {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                // A client that hangs up early has what it wanted.
                let _gone = answer(&mut stream, &pages).await;
            }
        });
    }
}

async fn answer<S>(stream: &mut S, pages: &[Page]) -> std::io::Result<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut head = Vec::new();
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let host = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map_or("", |(_, host)| host.trim());
    let reply = match pages
        .iter()
        .find(|page| page.host == host && page.path == path)
    {
        Some(page) => response(page.status, page.location.as_deref(), &page.body),
        None => response(404, None, "no such page in the demo"),
    };
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await
}

fn response(status: u16, location: Option<&str>, body: &str) -> String {
    let location = location.map_or(String::new(), |to| format!("location: {to}\r\n"));
    format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: text/html; charset=utf-8\r\n{location}content-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}
