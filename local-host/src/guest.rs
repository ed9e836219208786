//! What the host keeps for one instance of a component, and how a component is linked to it.

use std::sync::Arc;

use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Engine, Store, StoreLimits, StoreLimitsBuilder};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::p3::bindings::ServicePre;
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::bindings::{spin, wasi};
use crate::engine::INSTANCE_MEMORY;
use crate::guest_log::GuestLog;
use crate::key_value::{HasKeyValue, KeyValue, KeyValueView};
use crate::outbound::Outbound;
use crate::variables::ComponentVariables;

/// What a component may use; every instance of it gets a copy.
#[derive(Clone)]
pub struct Capabilities {
    /// The component's name.
    pub component: Arc<str>,
    /// Its environment variables.
    pub environment: Arc<[(String, String)]>,
    /// Its stores.
    pub key_value: KeyValue,
    /// Where it may send requests.
    pub outbound: Outbound,
    /// Its variables.
    pub variables: ComponentVariables,
}

/// The data of one instance's store.
pub struct Guest {
    table: ResourceTable,
    wasi: WasiCtx,
    http: WasiHttpCtx,
    limits: StoreLimits,
    capabilities: Capabilities,
}

impl Guest {
    /// A store for a new instance.
    pub fn store(engine: &Engine, capabilities: Capabilities) -> Store<Self> {
        let log = || GuestLog::new(capabilities.component.clone());
        let wasi = WasiCtxBuilder::new()
            .stdout(log())
            .stderr(log())
            .envs(&capabilities.environment)
            .build();
        let guest = Self {
            table: ResourceTable::new(),
            wasi,
            http: WasiHttpCtx::new(),
            limits: StoreLimitsBuilder::new()
                .memory_size(INSTANCE_MEMORY)
                .build(),
            capabilities,
        };
        let mut store = Store::new(engine, guest);
        store.limiter(|guest| &mut guest.limits);
        // A busy guest yields at every epoch; whether its time is up is decided outside.
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        store
    }

    /// Checks that a component exports a handler and imports nothing this host lacks.
    pub fn link(engine: &Engine, component: &Component) -> wasmtime::Result<ServicePre<Self>> {
        let mut linker = Linker::<Self>::new(engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        wasmtime_wasi::p3::add_to_linker(&mut linker)?;
        wasmtime_wasi_http::p3::add_to_linker(&mut linker)?;
        wasi::keyvalue::store::add_to_linker::<_, HasKeyValue>(&mut linker, Self::key_value)?;
        wasi::keyvalue::atomics::add_to_linker::<_, HasKeyValue>(&mut linker, Self::key_value)?;
        wasi::keyvalue::batch::add_to_linker::<_, HasKeyValue>(&mut linker, Self::key_value)?;
        spin::variables::variables::add_to_linker::<_, ComponentVariables>(&mut linker, |guest| {
            &mut guest.capabilities.variables
        })?;
        ServicePre::new(linker.instantiate_pre(component)?)
    }

    fn key_value(&mut self) -> KeyValueView<'_> {
        KeyValueView {
            key_value: &self.capabilities.key_value,
            table: &mut self.table,
        }
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.table,
            hooks: &mut self.capabilities.outbound,
        }
    }
}
