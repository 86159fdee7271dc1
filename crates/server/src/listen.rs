//! Listeners, from the URLs that the operator gave.

use crate::desk::{Listener, Serves};
use config::{Config, Url};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// A listener and what an operator calls it.
pub struct Bound {
    pub listener: Listener,
    pub serves: Serves,
    pub address: String,
}

/// Binds all addresses of the configuration. The error is the line that ends the start.
pub fn bind_all(config: &Config) -> Result<Vec<Bound>, String> {
    let http_apart = !config.listen_client_http_urls.is_empty();
    let clients = if http_apart { Serves::Grpc } else { Serves::Everything };
    let groups = [
        (&config.listen_peer_urls, Serves::Peers),
        (&config.listen_client_urls, clients),
        (&config.listen_client_http_urls, Serves::Http),
        (&config.listen_metrics_urls, Serves::Metrics),
    ];
    let mut bound = Vec::new();
    for (urls, serves) in groups {
        for url in urls {
            let address = url.address().to_owned();
            let listener = bind(url, config).map_err(|error| describe(&address, &error))?;
            bound.push(Bound { listener, serves, address });
        }
    }
    Ok(bound)
}

fn bind(url: &Url, config: &Config) -> io::Result<Listener> {
    if url.is_socket() {
        let path = url.socket_path();
        // A socket that a process left behind would block its name for ever.
        if std::os::unix::net::UnixStream::connect(&path).is_err() {
            let _was_not_there = std::fs::remove_file(&path);
        }
        return Ok(Listener::Unix(mio::net::UnixListener::bind(path)?));
    }
    let address = resolve(url.address())?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if config.socket_reuse_port {
        socket.set_reuse_port(true)?;
    }
    socket.set_tcp_keepalive(&socket2::TcpKeepalive::new())?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(Listener::Tcp(mio::net::TcpListener::from_std(socket.into())))
}

/// A name may stand for several addresses; as in Go, the first of the fourth version counts.
fn resolve(address: &str) -> io::Result<SocketAddr> {
    let address = match address.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => address.to_owned(),
    };
    let found: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| io::Error::other("no address for this name"))
}

/// In the words of etcd's users.
fn describe(address: &str, error: &io::Error) -> String {
    let what = match error.kind() {
        io::ErrorKind::AddrInUse => "bind: address already in use".to_owned(),
        io::ErrorKind::PermissionDenied => "bind: permission denied".to_owned(),
        io::ErrorKind::AddrNotAvailable => "bind: cannot assign requested address".to_owned(),
        _ => error.to_string(),
    };
    format!("listen tcp {address}: {what}")
}
