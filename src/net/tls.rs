//! rustls configurations: ring, HTTP/1.1, and the system's roots, which are read once per process and only if https
//! is used.

use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use thiserror::Error;
use tokio::task::JoinError;

/// The reason why a TLS configuration could not be built.
#[derive(Debug, Clone, Error)]
pub enum TlsConfigError {
    /// The system's roots cannot be read.
    #[error("{source} (install ca-certificates, or set SSL_CERT_FILE to a bundle)")]
    SystemRoots {
        /// The reason of rustls.
        source: rustls::Error,
    },
    /// The verifier does not accept the additional certificates.
    #[error("{source}")]
    ExtraRoots {
        /// The reason of rustls.
        source: rustls::Error,
    },
    /// The text is not valid PEM.
    #[error("not a PEM file: {source}")]
    NotPem {
        /// The reason of the PEM reader.
        source: Arc<pem::Error>,
    },
    /// The PEM text contains no certificate.
    #[error("holds no certificate in PEM form")]
    NoCertificate,
    /// The task that reads the roots did not end normally.
    #[error("{source}")]
    TaskFailed {
        /// The reason of the async runtime.
        source: Arc<JoinError>,
    },
}

impl From<JoinError> for TlsConfigError {
    fn from(error: JoinError) -> Self {
        TlsConfigError::TaskFailed {
            source: Arc::new(error),
        }
    }
}

/// Returns the crypto provider of this process, and installs it as the default the first time.
pub(super) fn crypto_provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| {
        // Other code, such as a test's server, may have installed one. That one is then the default.
        let _taken = rustls::crypto::ring::default_provider().install_default();
        CryptoProvider::get_default().map_or_else(
            || Arc::new(rustls::crypto::ring::default_provider()),
            Arc::clone,
        )
    }))
}

/// Returns a configuration without roots for plain http, so that dicta reads no certificate file.
pub(super) fn config_without_roots() -> ClientConfig {
    finish_config(new_builder().with_root_certificates(RootCertStore::empty()))
}

/// Returns a configuration with the system's roots. Reads files the first time, so call it where blocking is allowed.
pub(super) fn system_config() -> Result<ClientConfig, TlsConfigError> {
    // Reading the system's roots takes long, so it happens once per process.
    static SYSTEM: OnceLock<Result<Arc<Verifier>, TlsConfigError>> = OnceLock::new();
    let verifier = SYSTEM.get_or_init(|| {
        Verifier::new(crypto_provider())
            .map(Arc::new)
            .map_err(|source| TlsConfigError::SystemRoots { source })
    });
    verifier.clone().map(|v| config_with_verifier(v))
}

/// Returns a configuration with the system's roots and `extra`. Reads files, so call it where blocking is allowed.
pub(super) fn system_config_with(
    extra: &[CertificateDer<'static>],
) -> Result<ClientConfig, TlsConfigError> {
    Verifier::new_with_extra_roots(extra.iter().cloned(), crypto_provider())
        .map(|verifier| config_with_verifier(Arc::new(verifier)))
        .map_err(|source| TlsConfigError::ExtraRoots { source })
}

/// Disables TLS session resumption, so that a server cannot link two fetches.
pub(super) fn without_resumption(mut config: ClientConfig) -> ClientConfig {
    config.resumption = Resumption::disabled();
    config
}

/// Parses the certificates of a PEM text, at least one.
pub(super) fn parse_certificates(
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsConfigError::NotPem {
            source: Arc::new(error),
        })?;
    if found.is_empty() {
        return Err(TlsConfigError::NoCertificate);
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
    // `dangerous` is rustls's word for any verifier other than its own. This one is the platform's.
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
    // Both HTTP clients use `http1_only`, so dicta offers no other protocol.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::in_memory_sessions(32);
    config
}
