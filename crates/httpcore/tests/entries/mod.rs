//! What a fuzzer feeds: arbitrary bytes into every state machine, with an owner who answers. The
//! first byte chooses how the rest is cut. Nothing may panic.

use bytes::{Bytes, BytesMut};
use httpcore::{Output, grpc, h1, h2, hpack, ws};

pub type Entry = fn(&[u8]);

pub const ENTRIES: [(&str, Entry); 6] = [
    ("h2_server", h2_server),
    ("h2_client", h2_client),
    ("h1_server", h1_server),
    ("ws_server", ws_server),
    ("hpack", hpack),
    ("grpc", grpc),
];

pub fn h2_server(data: &[u8]) {
    let limits =
        h2::Limits { plain_http: true, message_bytes_max: 1 << 16, ..h2::Limits::default() };
    let mut server = h2::Server::new(h2::Settings::default(), limits);
    let mut input = BytesMut::new();
    for (now_ms, piece) in pieces(data).enumerate() {
        input.extend_from_slice(piece);
        let mut events = Vec::new();
        let received = server.receive(&mut input, now_ms as u64, &mut events);
        for event in events {
            match event {
                h2::Event::Message { id, data } => server.send_message(id, &[data]),
                h2::Event::HalfClosed { id } if id.number() % 4 == 1 => server.finish(id, 0, ""),
                h2::Event::HalfClosed { id } => server.respond_unary(id, &[]),
                h2::Event::HttpRequest { id, .. } => {
                    server.respond_http(id, 200, &[], Bytes::from_static(b"body"));
                }
                _ => {}
            }
        }
        consume(server.output());
        if received.is_err() {
            return;
        }
    }
}

pub fn h2_client(data: &[u8]) {
    let limits = h2::Limits { message_bytes_max: 1 << 16, ..h2::Limits::default() };
    let mut client = h2::Client::new(h2::Settings::default(), limits, "host:1");
    client.request("/a.B/C", &[], &[Bytes::from(vec![0; 100_000])]);
    let stream = client.open("/a.B/D", &[("x-name", "value")]);
    let mut input = BytesMut::new();
    for (now_ms, piece) in pieces(data).enumerate() {
        input.extend_from_slice(piece);
        let received = client.receive(&mut input, now_ms as u64, &mut Vec::new());
        client.send_message(stream, &[Bytes::from_static(b"more")]);
        consume(client.output());
        if received.is_err() {
            return;
        }
    }
}

pub fn h1_server(data: &[u8]) {
    let mut server = h1::Server::new(h1::Limits::default());
    let mut input = BytesMut::new();
    for piece in pieces(data) {
        input.extend_from_slice(piece);
        loop {
            let mut events = Vec::new();
            let received = server.receive(&mut input, &mut events);
            let ended = events.iter().any(|event| matches!(event, h1::Event::End));
            if ended {
                server.respond(200, &[("x-name", "value")], Bytes::from_static(b"body"));
            }
            consume(server.output());
            if received.is_err() {
                return;
            }
            if !ended || input.is_empty() {
                break;
            }
        }
    }
}

pub fn ws_server(data: &[u8]) {
    let limits = ws::Limits { message_bytes_max: 1 << 16 };
    let mut server = ws::Server::new(limits, Output::new());
    let mut input = BytesMut::new();
    for piece in pieces(data) {
        input.extend_from_slice(piece);
        let received = server.receive(&mut input, &mut Vec::new());
        consume(server.output());
        if received.is_err() {
            return;
        }
    }
}

pub fn hpack(data: &[u8]) {
    let mut decoder = hpack::Decoder::default();
    for piece in pieces(data) {
        let Ok(block) = decoder.decode(piece, 1 << 16) else { return };
        // What was decoded must survive being sent again.
        let (mut encoder, mut out) = (hpack::Encoder::default(), Vec::new());
        encoder.begin(&mut out);
        for field in &block.fields {
            encoder.repeated(&field.name, &field.value, &mut out);
        }
        let again = hpack::Decoder::default().decode(&out, 1 << 17).expect("our own encoding");
        assert_eq!(again.fields, block.fields);
    }
}

pub fn grpc(data: &[u8]) {
    let mut deframer = grpc::Deframer::with_gzip();
    for piece in pieces(data) {
        let mut piece = Bytes::copy_from_slice(piece);
        loop {
            match deframer.next(&mut piece, 1 << 16) {
                Ok(Some(message)) => assert!(message.len() <= 1 << 16),
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(deframer.partial_bytes() < 1 << 16);
    }
}

fn pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (length, rest) = data.split_first().map_or((1, data), |(&first, rest)| (first, rest));
    rest.chunks(usize::from(length).pow(2).max(1))
}

fn consume(output: &mut Output) {
    let all = output.len();
    output.advance(all);
}
