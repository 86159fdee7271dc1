pub mod grpc;
pub mod h2;
pub mod hpack;
pub mod output;
pub use output::Output;
