//! Policies: who may do what.

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {}
