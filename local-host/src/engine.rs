//! The wasmtime engine: what every component is compiled for and runs in.

use std::path::Path;
use std::time::Duration;

use wasmtime::{
    Cache, CacheConfig, Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig,
};

/// Memory that one instance may have, in bytes.
pub const INSTANCE_MEMORY: usize = 128 << 20;

/// How many instances there may be at once, over all components.
const INSTANCES: u32 = 1000;

/// How often a guest that does not stop computing is made to let others run, and its time to be
/// looked at.
const EPOCH: Duration = Duration::from_millis(20);

/// Core modules that `wasm-component-ld` makes of one component: the program, the adapter for
/// `wasi_snapshot_preview1`, and shims between them.
const CORE_INSTANCES: u32 = 8;

/// Memory of a slot that is kept when its instance ends, so that the next one needs no page faults
/// for it.
const KEEP_RESIDENT: usize = 256 << 10;

/// Makes the engine. Compiled code is kept under `cache`, an absolute path, so that only the first
/// start with a component compiles it.
pub fn new(cache: &Path) -> wasmtime::Result<Engine> {
    let mut compiled = CacheConfig::new();
    compiled.with_directory(cache);
    let mut config = Config::new();
    config
        .cache(Some(Cache::new(compiled)?))
        .epoch_interruption(true)
        .wasm_component_model_async(true)
        // Components are stripped, so a trace would be numbers; a panic says its place itself.
        .wasm_backtrace_max_frames(None)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    let engine = match Engine::new(&config) {
        Ok(engine) => engine,
        Err(error) => {
            // The pool reserves address space, which a machine may limit.
            tracing::warn!(%error, "no pool of instances, each is allocated on its own");
            config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
            Engine::new(&config)?
        }
    };

    let weak = engine.weak();
    std::thread::spawn(move || {
        while let Some(engine) = weak.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(EPOCH);
        }
    });
    Ok(engine)
}

fn pool() -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(INSTANCES)
        .total_core_instances(INSTANCES * CORE_INSTANCES)
        .total_memories(INSTANCES)
        .total_tables(INSTANCES * 2)
        .total_stacks(INSTANCES * 2)
        .max_memory_size(INSTANCE_MEMORY)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_RESIDENT);
    pool
}
