//! The note to the init system that this server is ready: `READY=1` on `NOTIFY_SOCKET`.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells systemd that the member serves. `Ok(false)` when nobody asked to be told.
pub fn ready() -> io::Result<bool> {
    match std::env::var_os("NOTIFY_SOCKET") {
        Some(name) if !name.is_empty() => send(&name, b"READY=1").map(|()| true),
        _ => Ok(false),
    }
}

/// A name that begins with `@` lives outside the file system, in the kernel's own table.
fn send(name: &OsStr, message: &[u8]) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(abstract_name) => SocketAddr::from_abstract_name(abstract_name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    socket.send_to_addr(message, &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_reaches_a_socket_by_path_and_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), b"READY=1").unwrap();
        let mut heard = [0; 16];
        assert_eq!(by_path.recv(&mut heard).unwrap(), 7);
        assert_eq!(&heard[..7], b"READY=1");

        let name = format!("althing-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), b"READY=1").unwrap();
        assert_eq!(by_name.recv(&mut heard).unwrap(), 7);
    }

    #[test]
    fn a_socket_that_is_gone_is_an_error() {
        assert!(send(OsStr::new("/nowhere/notify"), b"READY=1").is_err());
    }
}
