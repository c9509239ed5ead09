//! rustls configurations: ring, HTTP/1.1, the system's roots read once a process and only when https is used.

use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// The crypto provider of this process, installed as its default the first time.
pub(super) fn crypto_provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| {
        // Somebody else (a test's server) may have installed one: then that one is the default.
        let _taken = rustls::crypto::ring::default_provider().install_default();
        CryptoProvider::get_default().map_or_else(
            || Arc::new(rustls::crypto::ring::default_provider()),
            Arc::clone,
        )
    }))
}

/// A configuration that trusts nobody: for plain http, so that no root is read for it.
pub(super) fn config_without_roots() -> ClientConfig {
    finish_config(new_builder().with_root_certificates(RootCertStore::empty()))
}

/// The system's roots. Reads files the first time: call it where blocking is allowed.
pub(super) fn system_config() -> Result<ClientConfig, String> {
    static SYSTEM: OnceLock<Result<Arc<Verifier>, String>> = OnceLock::new();
    let verifier = SYSTEM.get_or_init(|| {
        Verifier::new(crypto_provider())
            .map(Arc::new)
            .map_err(|error| {
                format!("{error} (install ca-certificates, or set SSL_CERT_FILE to a bundle)")
            })
    });
    verifier.clone().map(|v| config_with_verifier(v))
}

/// The system's roots and these. Reads files: call it where blocking is allowed.
pub(super) fn system_config_with(
    extra: &[CertificateDer<'static>],
) -> Result<ClientConfig, String> {
    Verifier::new_with_extra_roots(extra.iter().cloned(), crypto_provider())
        .map(|verifier| config_with_verifier(Arc::new(verifier)))
        .map_err(|error| error.to_string())
}

/// The same, so that one handshake tells a server nothing about another.
pub(super) fn without_resumption(mut config: ClientConfig) -> ClientConfig {
    config.resumption = Resumption::disabled();
    config
}

/// The certificates of a PEM text; at least one.
pub(super) fn parse_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("not a PEM file: {error}"))?;
    if found.is_empty() {
        return Err("holds no certificate in PEM form".to_owned());
    }
    Ok(found)
}

type TlsConfigBuilder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn new_builder() -> TlsConfigBuilder {
    ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .expect("ring serves both TLS 1.2 and 1.3")
}

fn config_with_verifier(verifier: Arc<dyn ServerCertVerifier>) -> ClientConfig {
    // `dangerous` is rustls's word for any verifier but its own; this one is the platform's.
    finish_config(
        new_builder()
            .dangerous()
            .with_custom_certificate_verifier(verifier),
    )
}

fn finish_config(
    config: rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>,
) -> ClientConfig {
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::in_memory_sessions(32);
    config
}
