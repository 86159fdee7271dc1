//! What one unary call costs on each side, without sockets: client and server talk in memory.
//!
//! `cargo run --release -p httpcore --example unary_cost`

use std::hint::black_box;
use std::io::IoSlice;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use httpcore::Output;
use httpcore::h2::{Client, ClientEvent, Event, Limits, Server, Settings};

/// Calls per pass. The best of several passes counts: what disturbs a measurement only adds to it.
const CALLS: u32 = 4_000;
const PASSES: u32 = 25;
const HEADERS: [(&str, &str); 3] =
    [("user-agent", "load/1"), ("token", "abcdefgh.12345"), ("client-api-version", "3.6")];

fn main() {
    for batch in [1, 8, 64] {
        for bytes in [32, 1024, 16_000] {
            measure(batch, bytes, false);
        }
    }
    println!(
        "with a header that changes every time and goes through the tables, as Go's deadline:"
    );
    measure(1, 32, true);
    measure(64, 32, true);
}

fn measure(batch: u32, bytes: usize, restless: bool) {
    let passes = (0..PASSES).map(|_| pass(batch, bytes, restless));
    let (server, client) =
        passes.fold((u128::MAX, u128::MAX), |best, pass| (best.0.min(pass.0), best.1.min(pass.1)));
    println!(
        "{batch:3} calls per read, {bytes:6} bytes each way: server {server:5} ns, client {client:5} ns per call"
    );
}

/// Nanoseconds per call, server and client.
fn pass(batch: u32, bytes: usize, restless: bool) -> (u128, u128) {
    let mut server = Server::new(Settings::default(), Limits::default());
    let mut client = Client::new(Settings::default(), Limits::default(), "127.0.0.1:2379");
    let (mut to_server, mut to_client) = (BytesMut::new(), BytesMut::new());
    let (mut requests, mut answers) = (Vec::new(), Vec::new());
    let payload = [Bytes::from(vec![b'x'; bytes])];
    let (mut client_time, mut server_time) = (Duration::ZERO, Duration::ZERO);
    let mut done = 0;
    while done < CALLS {
        let start = Instant::now();
        for call in 0..batch {
            if restless {
                let number = format!("{}u", 1_000_000 + done + call);
                let headers = [HEADERS[0], HEADERS[1], HEADERS[2], ("x-deadline", &number)];
                client.request("/etcdserverpb.KV/Range", &headers, &payload);
            } else {
                client.request("/etcdserverpb.KV/Range", &HEADERS, &payload);
            }
        }
        client_time += start.elapsed();
        carry(client.output(), &mut to_server);

        let start = Instant::now();
        server.receive(&mut to_server, 0, &mut requests).expect("the client is correct");
        for event in requests.drain(..) {
            match event {
                Event::Request { path, .. } => drop(black_box(path)),
                Event::Message { data, .. } => drop(black_box(data)),
                Event::HalfClosed { id } => server.respond_unary(id, &payload),
                _ => {}
            }
        }
        server_time += start.elapsed();
        carry(server.output(), &mut to_client);

        let start = Instant::now();
        client.receive(&mut to_client, 0, &mut answers).expect("the server is correct");
        for event in answers.drain(..) {
            done += u32::from(matches!(event, ClientEvent::Trailers { code: 0, .. }));
        }
        client_time += start.elapsed();
    }
    let per_call = |time: Duration| time.as_nanos() / u128::from(done);
    (per_call(server_time), per_call(client_time))
}

/// Stands for the socket.
fn carry(output: &mut Output, input: &mut BytesMut) {
    let mut slices: Vec<IoSlice<'_>> = Vec::new();
    output.io_slices(&mut slices);
    input.reserve(64 * 1024);
    for slice in &slices {
        input.extend_from_slice(slice);
    }
    let all = output.len();
    output.advance(all);
}
