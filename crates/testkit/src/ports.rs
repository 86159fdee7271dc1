//! Ports that nobody takes between the moment they are chosen and the moment a server binds them.
//!
//! A port that the system hands out comes from the range from which it also gives ports to
//! outgoing connections, so any client may take it first; a client that knocks on a server that is
//! just restarting may even be connected to itself. So ports are taken from below that range, and
//! this process never takes one twice.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Linux gives 32768 and above to outgoing connections.
const FIRST: u16 = 10_000;
const COUNT: u16 = 22_000;

/// A port of the loopback that nobody listens on.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Runs side by side begin in different places.
    let begin = std::process::id().wrapping_mul(101) % u32::from(COUNT);
    for _ in 0..COUNT {
        let turn = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + ((begin + turn) % u32::from(COUNT)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("the loopback has no free port");
}

/// The same as an address.
pub fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}
