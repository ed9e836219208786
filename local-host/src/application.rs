//! A loaded application: its components compiled and linked, ready to serve.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use http::{Request, Response, StatusCode};
use wasmtime::Engine;
use wasmtime::component::Component as Compiled;
use wasmtime_wasi_http::handler::{ExpirationError, InstantiationError, ProxyHandler};
use wasmtime_wasi_http::p3::bindings::ServicePre;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::allowed_hosts::{AllowedHost, AllowedHostError};
use crate::door::body::{self, Received, Upload};
use crate::guest::{Capabilities, Guest};
use crate::key_value::{Database, KeyValue, RedisStore, StoreError, Stores};
use crate::manifest::{Component, Manifest};
use crate::outbound::Outbound;
use crate::pool::{Lifetimes, Pool};
use crate::reply;
use crate::routes::Router;
use crate::runtime_config::{DEFAULT_STORE, KeyValueStore};
use crate::spin_headers;
use crate::variables::{ComponentVariables, Values, VariablesError};

/// The address that a component sees for a call from another component, as on Spin.
const CHAINED_CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Why an application can't be started.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its variables have no complete set of values.
    #[error(transparent)]
    Variables(#[from] VariablesError),
    /// An allowed host with variables in it is no host.
    #[error("component {component}: {error}")]
    AllowedHost {
        /// Whose entry it is.
        component: String,
        /// What is wrong with it.
        error: AllowedHostError,
    },
    /// A component's file can't be read, compiled or linked.
    #[error("component {component} ({}): {error:#}", path.display())]
    Component {
        /// Its name.
        component: String,
        /// Its file.
        path: PathBuf,
        /// Why.
        error: wasmtime::Error,
    },
    /// The key-value store can't be opened.
    #[error("{}: {error}", path.display())]
    Database {
        /// Its file.
        path: PathBuf,
        /// Why.
        error: StoreError,
    },
    /// Redis holds one store, and a component asks for another.
    #[error(
        "component {component}: there is no key-value store {store:?}: in Redis there is \
         {DEFAULT_STORE:?} alone"
    )]
    UnknownStore {
        /// Whose manifest names it.
        component: String,
        /// The store.
        store: String,
    },
    /// The state folder can't be used.
    #[error("{}: {error}", path.display())]
    StateFolder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Wasmtime can't run here.
    #[error("wasmtime: {0:#}")]
    Engine(wasmtime::Error),
}

/// What an application is started with, besides its manifest.
pub struct Settings {
    /// Where compiled code and the key-value store in SQLite are kept; made if it is not there.
    pub state_folder: PathBuf,
    /// Where the key-value store is.
    pub key_value_store: KeyValueStore,
    /// Values of application variables; the environment goes before them.
    pub variables: BTreeMap<String, String>,
    /// Environment variables for every component, on top of the manifest's.
    pub environment: Vec<(String, String)>,
}

/// A running application.
pub struct Application {
    router: Router,
    components: HashMap<String, ProxyHandler<Pool>>,
    lifetimes: Lifetimes,
}

impl Application {
    /// Compiles and links every component of a manifest and opens the key-value store. Blocks for
    /// as long as compiling takes. Must be called inside a tokio runtime.
    pub fn load(manifest: Manifest, settings: Settings) -> Result<Arc<Self>, LoadError> {
        let environment = |name: &str| std::env::var(name).ok();
        let values = Values::resolve(&manifest.variables, environment, settings.variables)?;
        let folder = make_folder(&settings.state_folder)?;
        let engine = crate::engine::new(&folder.join("compiled")).map_err(LoadError::Engine)?;
        let stores = open_stores(settings.key_value_store, &folder, &manifest.components)?;

        let services = compile(&engine, &manifest.components)?;
        let mut parts = Vec::new();
        for (name, component) in manifest.components {
            let allowed = allowed_hosts(&name, &component, &values)?;
            let key_value = KeyValue::new(
                stores.clone(),
                component.key_value_stores.into_iter().collect(),
            );
            let environment: Vec<_> = component
                .environment
                .into_iter()
                .chain(settings.environment.iter().cloned())
                .collect();
            // The manifest's check made sure that every template renders.
            let variables = component
                .variables
                .iter()
                .filter_map(|(name, template)| Some((name.clone(), values.render(template)?)))
                .collect();
            parts.push((name, allowed, key_value, environment, variables));
        }

        let lifetimes = Lifetimes::default();
        Ok(Arc::new_cyclic(|application: &Weak<Self>| {
            let components = parts.into_iter().zip(services).map(
                |((name, allowed, key_value, environment, variables), service)| {
                    let component: Arc<str> = name.as_str().into();
                    let pool = Pool {
                        engine: engine.clone(),
                        service,
                        capabilities: Capabilities {
                            environment: environment.into(),
                            key_value,
                            outbound: Outbound::new(
                                component.clone(),
                                allowed,
                                application.clone(),
                            ),
                            variables: ComponentVariables::new(component.clone(), variables),
                            component,
                        },
                        lifetimes: lifetimes.clone(),
                    };
                    (name, ProxyHandler::new(pool))
                },
            );
            Self {
                router: Router::new(manifest.routes),
                components: components.collect(),
                lifetimes: lifetimes.clone(),
            }
        }))
    }

    /// Answers a request from outside. Its URI is absolute: scheme, authority, and the path as it
    /// came on the wire. `upload` is its body, if a part of that is still to come.
    pub async fn serve(
        &self,
        mut request: Request<WasiBody>,
        client: SocketAddr,
        upload: Option<Arc<Upload>>,
    ) -> Response<WasiBody> {
        let path = request.uri().path().to_owned();
        let Some(found) = self.router.route(&path) else {
            return reply::empty(StatusCode::NOT_FOUND);
        };
        spin_headers::add(
            &mut request,
            &found.pattern.route(),
            found.path_info,
            client,
        );
        let component = found.component;
        self.call(component, request, upload)
            .await
            .unwrap_or_else(|| {
                tracing::error!(component, "no such component");
                reply::empty(StatusCode::INTERNAL_SERVER_ERROR)
            })
    }

    /// Answers a request that one component sends to another.
    pub async fn chain(
        &self,
        component: &str,
        mut request: Request<WasiBody>,
    ) -> Result<Response<WasiBody>, Error> {
        let path = request.uri().path().to_owned();
        // Spin presents a chained call as if it came through the route `/...`.
        spin_headers::add(&mut request, "/...", &path, CHAINED_CLIENT);
        // A large body is as large for the second component as for the first.
        let (parts, body) = request.into_parts();
        let Received { body, upload } = body::receive(body).await.map_err(body::error)?;
        let request = Request::from_parts(parts, body);
        self.call(component, request, upload).await.ok_or_else(|| {
            tracing::warn!(
                component,
                "chained call to a component that no trigger names"
            );
            Error::DestinationNotFound
        })
    }

    /// Ends idle instances and waits for the busy ones.
    pub async fn close(&self) {
        self.lifetimes.close().await;
    }

    /// `None` if there is no such component. A guest that fails is a 500 without a body, as on
    /// Spin, and one that there was no room or no time for a 503; the reason is in the log.
    async fn call(
        &self,
        component: &str,
        request: Request<WasiBody>,
        upload: Option<Arc<Upload>>,
    ) -> Option<Response<WasiBody>> {
        let handler = self.components.get(component)?;
        Some(
            handler
                .handle(upload, request)
                .await
                .unwrap_or_else(|error| {
                    tracing::error!(component, "request failed: {error:#}");
                    reply::empty(status(&error))
                }),
        )
    }
}

/// How a request is answered whose guest failed.
fn status(error: &wasmtime::Error) -> StatusCode {
    if error.is::<InstantiationError<Option<Arc<Upload>>>>() || error.is::<ExpirationError>() {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    }
}

fn make_folder(path: &Path) -> Result<PathBuf, LoadError> {
    std::fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(|error| LoadError::StateFolder {
            path: path.to_owned(),
            error,
        })
}

fn open_stores(
    place: KeyValueStore,
    folder: &Path,
    components: &BTreeMap<String, Component>,
) -> Result<Stores, LoadError> {
    match place {
        KeyValueStore::Spin => {
            let path = folder.join("key-value.db");
            let database =
                Database::open(&path).map_err(|error| LoadError::Database { path, error })?;
            Ok(Stores::Sqlite(database))
        }
        KeyValueStore::Redis(url) => {
            for (name, component) in components {
                let mut stores = component.key_value_stores.iter();
                if let Some(store) = stores.find(|store| *store != DEFAULT_STORE) {
                    return Err(LoadError::UnknownStore {
                        component: name.clone(),
                        store: store.clone(),
                    });
                }
            }
            tracing::info!("the key-value store is in Redis at {url}");
            Ok(Stores::Redis(RedisStore::new(url)))
        }
    }
}

/// Compiles the components side by side; the result is in their order.
fn compile(
    engine: &Engine,
    components: &BTreeMap<String, Component>,
) -> Result<Vec<ServicePre<Guest>>, LoadError> {
    let compile_one = |name: &str, path: &Path| {
        Compiled::from_file(engine, path)
            .and_then(|component| Guest::link(engine, &component))
            .map_err(|error| LoadError::Component {
                component: name.to_owned(),
                path: path.to_owned(),
                error,
            })
    };
    std::thread::scope(|scope| {
        let compiling: Vec<_> = components
            .iter()
            .map(|(name, component)| scope.spawn(|| compile_one(name, &component.source)))
            .collect();
        compiling
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}

fn allowed_hosts(
    name: &str,
    component: &Component,
    values: &Values,
) -> Result<Vec<AllowedHost>, LoadError> {
    component
        .allowed_outbound_hosts
        .iter()
        .filter_map(|template| values.render(template))
        .map(|entry| {
            AllowedHost::parse(&entry).map_err(|error| LoadError::AllowedHost {
                component: name.to_owned(),
                error,
            })
        })
        .collect()
}
