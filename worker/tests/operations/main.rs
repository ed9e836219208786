//! The operations on real tables in temporary folders, in one binary since each that links Lance is
//! large.

mod attempts;
mod backfill;
mod cancel;
mod cleanup;
mod compact;
mod failures;
mod health;
mod optimize_indices;
mod processes;
mod scalar_index;
mod support;
mod vector_index;
