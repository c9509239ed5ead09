//! The connections of a source: at most four, opened on demand and reused.
//!
//! A connection whose statement was abandoned is closed, and the server is asked to cancel the statement.

use std::io;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::ClientConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::sql::SqlFailure;
use super::config::{PostgresConfig, TlsPolicy};
use super::metered_stream::{DatabaseStream, MeteredStream, ReadAllowance};
use crate::clock::{BoxFuture, Clock, with_timeout};
use crate::model::Millis;
use crate::net::{NetError, Resolver, dial, dial_tls_config, unverified_tls_config};
use crate::storage::{MAX_CERTIFICATES, read_regular_file};

/// The limit of simultaneous connections.
const MAX_CONNECTIONS: usize = 4;
/// The number of bytes that one call may read from the server.
const MAX_READ_BYTES: u64 = 64 << 20;
/// The time limit of asking the server to cancel a statement.
const CANCEL_TIMEOUT: Millis = Millis::from_secs(5);

/// The connections of a source.
pub(super) struct PostgresPool {
    pub(super) config: PostgresConfig,
    resolver: Arc<dyn Resolver>,
    tls: OnceLock<Option<MakeRustlsConnect>>,
    idle: Mutex<Vec<PostgresConnection>>,
    permits: Arc<Semaphore>,
}

/// An open connection.
pub(super) struct PostgresConnection {
    pub(super) client: Client,
    pub(super) allowance: ReadAllowance,
}

/// The reason why a connection could not be opened.
#[derive(Debug)]
pub(super) struct PostgresConnectError {
    /// The message for the user.
    pub(super) user_message: String,
    /// The message for the language model.
    model_message: String,
    transient: bool,
}

impl From<PostgresConnectError> for SqlFailure {
    fn from(none: PostgresConnectError) -> Self {
        if none.transient {
            SqlFailure::Transient(none.model_message)
        } else {
            SqlFailure::Permanent(none.model_message)
        }
    }
}

impl PostgresConnectError {
    fn new(user_message: String, transient: bool) -> Self {
        let model_message = "cannot connect to the database".to_owned();
        Self {
            user_message,
            model_message,
            transient,
        }
    }
}

impl PostgresPool {
    pub(super) fn new(config: PostgresConfig, resolver: Arc<dyn Resolver>) -> Self {
        Self {
            config,
            resolver,
            tls: OnceLock::new(),
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }

    /// Returns a connection for one statement.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        clock: &Arc<dyn Clock>,
    ) -> Result<PooledConnection, PostgresConnectError> {
        // The limit includes the wait for a free connection.
        let limit = self.config.connect_timeout;
        let acquisition = Arc::clone(self).acquire_unbounded(Arc::clone(clock));
        let acquired = with_timeout(&**clock, limit, acquisition).await;
        acquired.unwrap_or_else(|| {
            let why = format!("no connection within {} s", limit.0 / 1000);
            Err(PostgresConnectError::new(why, true))
        })
    }

    fn acquire_unbounded(
        self: Arc<Self>,
        clock: Arc<dyn Clock>,
    ) -> BoxFuture<'static, Result<PooledConnection, PostgresConnectError>> {
        Box::pin(async move {
            // The permit comes first, so that no more connections open than the limit.
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let permit =
                permit.map_err(|_| PostgresConnectError::new("closed".to_owned(), false))?;
            let link = match self.take_idle() {
                Some(link) => link,
                None => self.connect(&*clock).await?,
            };
            // The allowance counts per call, and a reused connection has used up some of it.
            link.allowance.renew(MAX_READ_BYTES);
            Ok(PooledConnection {
                connection: Some(link),
                pool: self,
                clock,
                _permit: permit,
            })
        })
    }

    fn take_idle(&self) -> Option<PostgresConnection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The server may have closed idle connections.
        idle.retain(|link| !link.client.is_closed());
        idle.pop()
    }

    fn connect<'a>(
        &'a self,
        clock: &'a dyn Clock,
    ) -> BoxFuture<'a, Result<PostgresConnection, PostgresConnectError>> {
        Box::pin(async move {
            let tls = self.tls_connector().await?;
            let allowance = ReadAllowance::default();
            // The login also reads from the server, and a new allowance is empty.
            allowance.renew(MAX_READ_BYTES);
            let stream = MeteredStream::new(
                self.open_stream(clock, self.config.connect_timeout).await?,
                allowance.clone(),
            );
            let config = self.client_config();
            let failed = |error| self.login_error(&error);
            let client = if let Some(tls) = tls {
                let tls = self.host_tls_connector(tls);
                let (client, connection) = config.connect_raw(stream, tls).await.map_err(failed)?;
                // The task ends with the client. Its errors also fail the client's requests, so they need no report
                // here.
                tokio::spawn(async move { drop(connection.await) });
                client
            } else {
                let (client, connection) =
                    config.connect_raw(stream, NoTls).await.map_err(failed)?;
                tokio::spawn(async move { drop(connection.await) });
                client
            };
            Ok(PostgresConnection { client, allowance })
        })
    }

    fn host_tls_connector(
        &self,
        mut tls: MakeRustlsConnect,
    ) -> <MakeRustlsConnect as MakeTlsConnect<MeteredStream>>::TlsConnect {
        let host = &self.config.host;
        match MakeTlsConnect::<MeteredStream>::make_tls_connect(&mut tls, host) {
            Ok(connector) => connector,
            Err(never) => match never {},
        }
    }

    fn client_config(&self) -> Config {
        let settings = &self.config;
        let mut config = Config::new();
        config
            .user(&settings.user)
            .dbname(&settings.database)
            .application_name(&settings.application_name)
            .ssl_mode(match settings.tls {
                TlsPolicy::Off => SslMode::Disable,
                TlsPolicy::Prefer => SslMode::Prefer,
                // A verified connection differs from an unverified one by the TLS configuration only.
                TlsPolicy::Require | TlsPolicy::Verified(_) => SslMode::Require,
            });
        if let Some(password) = &settings.password {
            config.password(password);
        }
        if !settings.options.is_empty() {
            config.options(settings.options.join(" "));
        }
        config
    }

    fn open_stream<'a>(
        &'a self,
        clock: &'a dyn Clock,
        limit: Millis,
    ) -> BoxFuture<'a, Result<Box<dyn DatabaseStream>, PostgresConnectError>> {
        Box::pin(async move {
            let bad = |error: NetError| PostgresConnectError::new(error.to_string(), true);
            let settings = &self.config;
            let Some(path) = settings.socket_path() else {
                let (host, port) = (&settings.host, settings.port);
                let stream = dial(host, port, &*self.resolver, clock, limit).await;
                return Ok(Box::new(stream.map_err(bad)?) as Box<dyn DatabaseStream>);
            };
            #[cfg(unix)]
            {
                let stream = crate::net::dial_unix(&path, clock, limit).await;
                Ok(Box::new(stream.map_err(bad)?) as Box<dyn DatabaseStream>)
            }
            #[cfg(not(unix))]
            {
                let why = format!("{}: no socket files here", path.display());
                Err(PostgresConnectError::new(why, false))
            }
        })
    }

    /// Builds the TLS connector on first use.
    async fn tls_connector(&self) -> Result<Option<MakeRustlsConnect>, PostgresConnectError> {
        if let Some(made) = self.tls.get() {
            // The driver's configuration is shared, so the clone is cheap.
            return Ok(made.clone());
        }
        let made = match &self.config.tls {
            TlsPolicy::Off => Ok(None),
            TlsPolicy::Prefer | TlsPolicy::Require => Ok(Some(unverified_tls_config())),
            TlsPolicy::Verified(roots) => load_tls_config(roots.clone()).await.map(Some),
        };
        let made = made.map_err(|why| PostgresConnectError::new(why, false))?;
        let made = made.map(MakeRustlsConnect::new);
        Ok(self.tls.get_or_init(|| made).clone())
    }

    /// Describes a failed login for the user and for the language model.
    fn login_error(&self, error: &tokio_postgres::Error) -> PostgresConnectError {
        use std::error::Error as _;
        let Some(db) = error.as_db_error() else {
            // The driver's own text hides the cause, which is in its source.
            let cause = error.source().map(|cause| format!(": {cause}"));
            let why = format!("{error}{}", cause.unwrap_or_default());
            // A TLS problem does not change with a retry.
            let passing = error.source().is_some_and(|cause| {
                cause.downcast_ref::<io::Error>().is_some_and(|io| {
                    !matches!(
                        io.kind(),
                        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
                    )
                })
            });
            // The user did not ask for the check, so the message names the setting that changes it.
            let hint = if passing || !self.config.is_default_tls {
                ""
            } else {
                match self.config.tls {
                    TlsPolicy::Verified(_) => {
                        "; for a remote host dicta uses `sslmode: verify-full`: name the authority in `sslrootcert`, or set `sslmode`"
                    }
                    _ => "",
                }
            };
            let why = self.redact_password(&why) + hint;
            return PostgresConnectError::new(why, passing);
        };
        let code = db.code().code();
        PostgresConnectError {
            user_message: self.redact_password(&format!("{code} {}", db.message())),
            // The model gets only the code: the server's text may contain names of users and hosts.
            model_message: format!("{code} the database refused the connection"),
            transient: is_transient_sql_state(db.code()),
        }
    }

    /// Replaces the password in a text.
    pub(super) fn redact_password(&self, text: &str) -> String {
        match &self.config.password {
            Some(password) => text.replace(password.as_str(), "…"),
            None => text.to_owned(),
        }
    }

    /// Asks the server to cancel the statement of an abandoned connection.
    fn cancel_query(
        self: Arc<Self>,
        link: PostgresConnection,
        clock: Arc<dyn Clock>,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let token = link.client.cancel_token();
            // A new connection carries the cancellation, as the protocol of PostgreSQL requires.
            let stopping = async {
                let (Ok(tls), Ok(stream)) = (
                    self.tls_connector().await,
                    self.open_stream(&*clock, CANCEL_TIMEOUT).await,
                ) else {
                    return;
                };
                let allowance = link.allowance.clone();
                allowance.renew(MAX_READ_BYTES);
                let stream = MeteredStream::new(stream, allowance);
                // The server replies by closing. If the request does not arrive, the statement ends at its own time
                // limit.
                let _best_effort = match tls {
                    Some(tls) => {
                        token
                            .cancel_query_raw(stream, self.host_tls_connector(tls))
                            .await
                    }
                    None => token.cancel_query_raw(stream, NoTls).await,
                };
            };
            let _best_effort = with_timeout(&*clock, CANCEL_TIMEOUT, stopping).await;
        })
    }
}

async fn load_tls_config(roots: Option<PathBuf>) -> Result<ClientConfig, String> {
    let Some(path) = roots else {
        let config = dial_tls_config(None).await;
        return config.map_err(|error| error.to_string());
    };
    let name = path.display().to_string();
    let read =
        tokio::task::spawn_blocking(move || read_regular_file(&path, MAX_CERTIFICATES)).await;
    let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
    let pem = read.map_err(|error| format!("sslrootcert {name}: {error}"))?;
    let config = dial_tls_config(Some(pem)).await;
    config.map_err(|why| format!("sslrootcert {name}: {why}"))
}

/// Returns true if a retry may succeed.
pub(super) fn is_transient_sql_state(code: &SqlState) -> bool {
    // Connection failures, timeouts, serialization failures, deadlocks, too many clients, server shutdown and start.
    const PASSING: [&str; 9] = [
        "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02", "57P03", "57P05",
    ];
    // Class 08 is a connection exception.
    code.code().starts_with("08") || PASSING.contains(&code.code())
}

/// A connection in use. [`Self::release`] returns it to the pool; dropping it cancels its statement.
pub(super) struct PooledConnection {
    connection: Option<PostgresConnection>,
    pool: Arc<PostgresPool>,
    clock: Arc<dyn Clock>,
    _permit: OwnedSemaphorePermit,
}

const TAKEN_ONLY_ON_RELEASE: &str = "taken by done or drop alone";

impl Deref for PooledConnection {
    type Target = PostgresConnection;

    fn deref(&self) -> &PostgresConnection {
        self.connection.as_ref().expect(TAKEN_ONLY_ON_RELEASE)
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut PostgresConnection {
        self.connection.as_mut().expect(TAKEN_ONLY_ON_RELEASE)
    }
}

impl PooledConnection {
    /// Returns an idle connection to the pool.
    pub(super) fn release(mut self) {
        let Some(link) = self.connection.take() else {
            return;
        };
        // A spent connection is in an unknown state: the server may still be sending rows.
        if !link.client.is_closed() && !link.allowance.is_spent() {
            let idle = self.pool.idle.lock();
            idle.unwrap_or_else(PoisonError::into_inner).push(link);
        }
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(link) = self.connection.take() else {
            return;
        };
        // Nothing to cancel: the connection has already ended.
        if link.client.is_closed() {
            return;
        }
        // Without a runtime, the program is about to end.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let home = Arc::clone(&self.pool);
            runtime.spawn(home.cancel_query(link, Arc::clone(&self.clock)));
        }
    }
}
