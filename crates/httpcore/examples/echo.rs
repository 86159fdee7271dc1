//! A server that answers every unary call with an empty message, repeats what it hears on paths that
//! end in `Watch` or `Stream`, and says `hello` to requests that are not gRPC: for trying real
//! clients against this crate.
//!
//! ```text
//! cargo run -p httpcore --example echo -- 127.0.0.1:27911
//! etcdctl --endpoints=127.0.0.1:27911 put a b
//! ```

use std::collections::HashSet;
use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use httpcore::Output;
use httpcore::h2::{Event, Limits, Server, Settings, StreamId};

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:27911".to_string());
    let listener = TcpListener::bind(&address)?;
    println!("listening on {address}");
    for socket in listener.incoming() {
        let socket = socket?;
        std::thread::spawn(move || {
            if let Err(error) = serve(socket) {
                println!("connection ended: {error}");
            }
        });
    }
    Ok(())
}

fn serve(mut socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let start = Instant::now();
    let mut server = Server::new(
        Settings { max_concurrent_streams: 100, ..Settings::default() },
        Limits { plain_http: true, ..Limits::default() },
    );
    let (mut streams, mut plain) = (HashSet::new(), HashSet::new());
    let mut input = BytesMut::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        flush(server.output(), &mut socket)?;
        let length = socket.read(&mut chunk)?;
        if length == 0 {
            return Ok(());
        }
        input.extend_from_slice(&chunk[..length]);
        let mut events = Vec::new();
        let now_ms = start.elapsed().as_millis() as u64;
        let received = server.receive(&mut input, now_ms, &mut events);
        for event in events {
            if let Event::Message { id, data } | Event::Data { id, data } = &event {
                println!("{id:?}: {} bytes", data.len());
            } else {
                println!("{event:?}");
            }
            match event {
                Event::Request { id, path, .. }
                    if path.ends_with(b"Watch") || path.ends_with(b"Stream") =>
                {
                    streams.insert(id);
                }
                Event::Message { id, data } if streams.contains(&id) => {
                    server.send_message(id, &[data]);
                }
                Event::HttpRequest { id, end: true, .. } => hello(&mut server, id),
                Event::HttpRequest { id, .. } => {
                    plain.insert(id);
                }
                Event::HalfClosed { id } if plain.remove(&id) => hello(&mut server, id),
                Event::HalfClosed { id } if streams.remove(&id) => server.finish(id, 0, ""),
                Event::HalfClosed { id } => server.respond_unary(id, &[]),
                Event::Reset { id, .. } => {
                    streams.remove(&id);
                }
                _ => {}
            }
        }
        if let Err(closed) = received {
            flush(server.output(), &mut socket)?;
            return Err(io::Error::other(closed));
        }
    }
}

fn hello(server: &mut Server, id: StreamId) {
    server.respond_http(id, 200, &[("content-type", "text/plain")], Bytes::from_static(b"hello\n"));
}

fn flush(output: &mut Output, socket: &mut TcpStream) -> io::Result<()> {
    while !output.is_empty() {
        let mut slices: Vec<IoSlice<'_>> = Vec::new();
        output.io_slices(&mut slices);
        let length = socket.write_vectored(&slices)?;
        drop(slices);
        output.advance(length);
    }
    Ok(())
}
