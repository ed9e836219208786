//! Generated from `wit/`: the traits behind the interfaces that are not WASI's own.

wasmtime::component::bindgen!({
    path: "wit",
    world: "host",
    imports: { default: async | trappable },
    with: {
        "wasi:keyvalue/store.bucket": crate::key_value::Bucket,
        "wasi:keyvalue/atomics.cas": crate::key_value::CompareAndSwap,
    },
});
