//! The operations on real tables in temporary folders, in one binary since each that links Lance is
//! large.

mod cleanup;
mod compact;
mod failures;
mod optimize_indices;
mod scalar_index;
mod support;
mod vector_index;
