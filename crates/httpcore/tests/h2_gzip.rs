//! A client that compresses is understood, and answered in kind.
#![cfg(feature = "gzip")]

mod wire;

use std::io::{Read, Write};

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use httpcore::h2::{Event, Limits, Server, Settings};
use wire::{drain, frame, literal};

#[test]
fn compressed_calls_are_answered_compressed() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&[b'q'; 1000]).expect("memory");
    let compressed = encoder.finish().expect("memory");
    let mut message = vec![1];
    message.extend((compressed.len() as u32).to_be_bytes());
    message.extend(compressed);
    // A stream may mix compressed and plain messages.
    message.extend(wire::message(b"plain"));

    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/a.B/C"),
        ("content-type", "application/grpc"),
        ("grpc-encoding", "gzip"),
    ];
    let block: Vec<u8> = fields.iter().flat_map(|(name, value)| literal(name, value)).collect();
    let mut input = BytesMut::from(wire::PREFACE);
    input.extend_from_slice(&frame(4, 0, 0, &[]));
    input.extend_from_slice(&frame(1, 4, 1, &block));
    input.extend_from_slice(&frame(0, 1, 1, &message));

    let mut server = Server::new(Settings::default(), Limits::default());
    let mut events = Vec::new();
    drain(server.output());
    server.receive(&mut input, 0, &mut events).expect("a correct client");
    drain(server.output());
    let [
        Event::Request { id, .. },
        Event::Message { data, .. },
        Event::Message { data: plain, .. },
        Event::HalfClosed { .. },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(data[..], [b'q'; 1000]);
    assert_eq!(plain, "plain");

    server.respond_unary(*id, &[Bytes::from(vec![b'a'; 500]), Bytes::from(vec![b'b'; 500])]);
    let out = drain(server.output());
    let head = u32::from_be_bytes([0, out[0], out[1], out[2]]) as usize;
    let head_text = String::from_utf8_lossy(&out[9..9 + head]);
    assert!(head_text.contains("grpc-encoding\u{4}gzip"), "{head_text:?}");
    let data = &out[9 + head..];
    let length = u32::from_be_bytes([0, data[0], data[1], data[2]]) as usize;
    assert_eq!(data[9], 1, "marked as compressed");
    let mut plain = String::new();
    GzDecoder::new(&data[14..9 + length]).read_to_string(&mut plain).expect("gzip");
    assert_eq!(plain, ["a".repeat(500), "b".repeat(500)].concat());
}
