//! Threads, and what it means when one of them fails.

use config::log::Logger;
use std::fmt::Display;
use std::thread::{self, JoinHandle};

/// Waits for a thread's end.
pub fn join(thread: JoinHandle<()>) {
    // A thread that panicked has said so and has ended the process.
    let _ended = thread.join();
}

pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::Builder::new().name(name.into()).spawn(run).expect("a thread can be started")
}

/// A thread whose failure ends the process: going on without it would be wrong.
pub fn spawn_vital<E: Display>(
    name: &str,
    logger: &Logger,
    run: impl FnOnce() -> Result<(), E> + Send + 'static,
) -> JoinHandle<()> {
    let (logger, owner) = (logger.clone(), name.to_owned());
    spawn(name, move || {
        if let Err(error) = run() {
            config::fatal!(logger, "this member cannot go on", "thread" => owner, "error" => error.to_string());
            std::process::exit(1);
        }
    })
}

/// A bug in one thread must not leave the others serving half a member.
pub fn stop_on_panic(logger: &Logger) {
    let logger = logger.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = thread::current().name().unwrap_or("unnamed").to_owned();
        config::fatal!(logger, "this is a bug in Althing; stopping, so that nothing wrong is served",
            "thread" => thread, "error" => panic.to_string());
        std::process::exit(2);
    }));
}
