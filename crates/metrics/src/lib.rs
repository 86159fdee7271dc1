//! What `/metrics` shows.
pub struct Metrics {}
