//! The replicated state machine.

mod change;
mod wire;

pub use change::{Change, Event};
