//! Connections of a source: at most four, opened as needed, kept while they work, thrown away when a statement was
//! abandoned on one (the server is then told to stop it).

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

use super::super::sql::Failure;
use super::meter::{Grant, Metered, Stream};
use super::settings::{Settings, Tls};
use crate::clock::{BoxFuture, Clock};
use crate::model::Millis;
use crate::net::{NetError, Resolver, dial, dial_tls_config, unverified_tls_config, with_timeout};

/// Connections at a time.
const MOST: usize = 4;
/// What one call may read from the server, in bytes.
const GRANT: u64 = 64 << 20;
/// For telling a server to stop a statement.
const STOPPING: Millis = Millis::from_secs(5);

/// The connections.
pub(super) struct Links {
    pub(super) settings: Settings,
    resolver: Arc<dyn Resolver>,
    tls: OnceLock<Option<MakeRustlsConnect>>,
    idle: Mutex<Vec<Link>>,
    places: Arc<Semaphore>,
}

/// One that is open.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) grant: Grant,
}

/// Why there is none.
#[derive(Debug)]
pub(super) struct NoLink {
    /// For the user, who knows the server.
    pub(super) why: String,
    /// For a model.
    told: String,
    transient: bool,
}

impl From<NoLink> for Failure {
    fn from(none: NoLink) -> Self {
        if none.transient {
            Failure::Transient(none.told)
        } else {
            Failure::Plain(none.told)
        }
    }
}

impl NoLink {
    fn new(why: String, transient: bool) -> Self {
        let told = "cannot connect to the database".to_owned();
        Self {
            why,
            told,
            transient,
        }
    }
}

impl Links {
    pub(super) fn new(settings: Settings, resolver: Arc<dyn Resolver>) -> Self {
        Self {
            settings,
            resolver,
            tls: OnceLock::new(),
            idle: Mutex::default(),
            places: Arc::new(Semaphore::new(MOST)),
        }
    }

    /// A connection for one statement.
    pub(super) async fn get(self: &Arc<Self>, clock: &Arc<dyn Clock>) -> Result<Held, NoLink> {
        let limit = self.settings.connect;
        let getting = Arc::clone(self).held(Arc::clone(clock));
        let got = with_timeout(&**clock, limit, getting).await;
        got.unwrap_or_else(|| {
            let why = format!("no connection within {} s", limit.0 / 1000);
            Err(NoLink::new(why, true))
        })
    }

    fn held(self: Arc<Self>, clock: Arc<dyn Clock>) -> BoxFuture<'static, Result<Held, NoLink>> {
        Box::pin(async move {
            let place = Arc::clone(&self.places).acquire_owned().await;
            let place = place.map_err(|_| NoLink::new("closed".to_owned(), false))?;
            let link = match self.live() {
                Some(link) => link,
                None => self.connect(&*clock).await?,
            };
            link.grant.renew(GRANT);
            Ok(Held {
                link: Some(link),
                home: self,
                clock,
                _place: place,
            })
        })
    }

    fn live(&self) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|link| !link.client.is_closed());
        idle.pop()
    }

    fn connect<'a>(&'a self, clock: &'a dyn Clock) -> BoxFuture<'a, Result<Link, NoLink>> {
        Box::pin(async move {
            let tls = self.maker().await?;
            let grant = Grant::default();
            grant.renew(GRANT);
            let wire = Metered::new(
                self.dial(clock, self.settings.connect).await?,
                grant.clone(),
            );
            let config = self.config();
            let failed = |error| self.refused(&error);
            let client = if let Some(tls) = tls {
                let tls = self.connector(tls);
                let (client, connection) = config.connect_raw(wire, tls).await.map_err(failed)?;
                // It ends with the client; what failed there fails the client's requests too.
                tokio::spawn(async move { drop(connection.await) });
                client
            } else {
                let (client, connection) = config.connect_raw(wire, NoTls).await.map_err(failed)?;
                tokio::spawn(async move { drop(connection.await) });
                client
            };
            Ok(Link { client, grant })
        })
    }

    fn connector(
        &self,
        mut tls: MakeRustlsConnect,
    ) -> <MakeRustlsConnect as MakeTlsConnect<Metered>>::TlsConnect {
        let host = &self.settings.host;
        match MakeTlsConnect::<Metered>::make_tls_connect(&mut tls, host) {
            Ok(connector) => connector,
            Err(never) => match never {},
        }
    }

    fn config(&self) -> Config {
        let settings = &self.settings;
        let mut config = Config::new();
        config
            .user(&settings.user)
            .dbname(&settings.database)
            .application_name(&settings.application)
            .ssl_mode(match settings.tls {
                Tls::Off => SslMode::Disable,
                Tls::Prefer => SslMode::Prefer,
                Tls::Require | Tls::Verified(_) => SslMode::Require,
            });
        if let Some(password) = &settings.password {
            config.password(password);
        }
        if !settings.options.is_empty() {
            config.options(settings.options.join(" "));
        }
        config
    }

    fn dial<'a>(
        &'a self,
        clock: &'a dyn Clock,
        limit: Millis,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, NoLink>> {
        Box::pin(async move {
            let bad = |error: NetError| NoLink::new(error.to_string(), true);
            let settings = &self.settings;
            let Some(path) = settings.socket() else {
                let (host, port) = (&settings.host, settings.port);
                let stream = dial(host, port, &*self.resolver, clock, limit).await;
                return Ok(Box::new(stream.map_err(bad)?) as Box<dyn Stream>);
            };
            #[cfg(unix)]
            {
                let stream = crate::net::dial_unix(&path, clock, limit).await;
                Ok(Box::new(stream.map_err(bad)?) as Box<dyn Stream>)
            }
            #[cfg(not(unix))]
            {
                let why = format!("{}: no socket files here", path.display());
                Err(NoLink::new(why, false))
            }
        })
    }

    /// How TLS is spoken; read once.
    async fn maker(&self) -> Result<Option<MakeRustlsConnect>, NoLink> {
        if let Some(made) = self.tls.get() {
            return Ok(made.clone());
        }
        let made = match &self.settings.tls {
            Tls::Off => Ok(None),
            Tls::Prefer | Tls::Require => Ok(Some(unverified_tls_config())),
            Tls::Verified(roots) => verified(roots.clone()).await.map(Some),
        };
        let made = made.map_err(|why| NoLink::new(why, false))?;
        let made = made.map(MakeRustlsConnect::new);
        Ok(self.tls.get_or_init(|| made).clone())
    }

    /// Why a login failed, in both tongues.
    fn refused(&self, error: &tokio_postgres::Error) -> NoLink {
        use std::error::Error as _;
        let Some(db) = error.as_db_error() else {
            let cause = error.source().map(|cause| format!(": {cause}"));
            let why = format!("{error}{}", cause.unwrap_or_default());
            // What it says of TLS does not change by asking again.
            let passing = error.source().is_some_and(|cause| {
                cause.downcast_ref::<io::Error>().is_some_and(|io| {
                    !matches!(
                        io.kind(),
                        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
                    )
                })
            });
            return NoLink::new(self.clean(&why), passing);
        };
        let code = db.code().code();
        NoLink {
            why: self.clean(&format!("{code} {}", db.message())),
            told: format!("{code} the database refused the connection"),
            transient: is_passing(db.code()),
        }
    }

    /// A text without the password.
    pub(super) fn clean(&self, text: &str) -> String {
        match &self.settings.password {
            Some(password) => text.replace(password.as_str(), "…"),
            None => text.to_owned(),
        }
    }

    /// Tells the server to stop what runs on a connection that nobody listens to any more.
    fn stop(self: Arc<Self>, link: Link, clock: Arc<dyn Clock>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let token = link.client.cancel_token();
            let stopping = async {
                let (Ok(tls), Ok(wire)) = (self.maker().await, self.dial(&*clock, STOPPING).await)
                else {
                    return;
                };
                let grant = link.grant.clone();
                grant.renew(GRANT);
                let wire = Metered::new(wire, grant);
                // The server answers with closing; if it never heard, the statement ends at its own time.
                let _best_effort = match tls {
                    Some(tls) => token.cancel_query_raw(wire, self.connector(tls)).await,
                    None => token.cancel_query_raw(wire, NoTls).await,
                };
            };
            let _best_effort = with_timeout(&*clock, STOPPING, stopping).await;
        })
    }
}

async fn verified(roots: Option<PathBuf>) -> Result<ClientConfig, String> {
    let Some(path) = roots else {
        return dial_tls_config(None).await;
    };
    let name = path.display().to_string();
    let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
    let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
    let pem = read.map_err(|error| format!("sslrootcert {name}: {error}"))?;
    let config = dial_tls_config(Some(pem)).await;
    config.map_err(|why| format!("sslrootcert {name}: {why}"))
}

/// Whether the same may work when it is tried again.
pub(super) fn is_passing(code: &SqlState) -> bool {
    // Connections, timeouts, serialisation, deadlocks, too many clients, shutting down or starting up.
    const PASSING: [&str; 9] = [
        "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02", "57P03", "57P05",
    ];
    code.code().starts_with("08") || PASSING.contains(&code.code())
}

/// A connection in use. It goes home when it is [`Held::done`]; otherwise what runs on it is stopped.
pub(super) struct Held {
    link: Option<Link>,
    home: Arc<Links>,
    clock: Arc<dyn Clock>,
    _place: OwnedSemaphorePermit,
}

const HELD: &str = "taken by done or drop alone";

impl Deref for Held {
    type Target = Link;

    fn deref(&self) -> &Link {
        self.link.as_ref().expect(HELD)
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut Link {
        self.link.as_mut().expect(HELD)
    }
}

impl Held {
    /// Nothing runs on it any more.
    pub(super) fn done(mut self) {
        let Some(link) = self.link.take() else { return };
        if !link.client.is_closed() && !link.grant.is_spent() {
            let idle = self.home.idle.lock();
            idle.unwrap_or_else(PoisonError::into_inner).push(link);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        if link.client.is_closed() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let home = Arc::clone(&self.home);
            runtime.spawn(home.stop(link, Arc::clone(&self.clock)));
        }
    }
}
