//! WebSocket frames: what a client may send, what it may not, and what is sent back.

mod wire;

use bytes::{Bytes, BytesMut};
use httpcore::Output;
use httpcore::ws::{Closed, Event, Limits, Server};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const FIN: u8 = 0x80;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A client's frame, masked.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x12, 0x34, 0x56, 0x78];
    let mut out = vec![first];
    match payload.len() {
        length @ 0..=125 => out.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            out.push(0x80 | 126);
            out.extend((length as u16).to_be_bytes());
        }
        length => {
            out.push(0x80 | 127);
            out.extend((length as u64).to_be_bytes());
        }
    }
    out.extend(mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

fn listen<'a>(
    limit: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Event>, Result<(), Closed>, Vec<u8>) {
    let mut server = Server::new(Limits { message_bytes_max: limit }, Output::new());
    let (mut input, mut events) = (BytesMut::new(), Vec::new());
    let mut result = Ok(());
    for piece in pieces {
        input.extend_from_slice(piece);
        result = server.receive(&mut input, &mut events);
        if result.is_err() {
            break;
        }
    }
    (events, result, wire::drain(server.output()))
}

fn events(bytes: &[u8]) -> Vec<Event> {
    let (events, result, _) = listen(100_000, [bytes]);
    assert_eq!(result, Ok(()));
    events
}

fn code(bytes: &[u8]) -> u16 {
    let (_, result, out) = listen(1000, [bytes]);
    let closed = result.expect_err("this must not be accepted");
    let tail = [&closed.code.to_be_bytes(), closed.reason.as_bytes()].concat();
    assert!(out.ends_with(&tail), "the client is told why");
    closed.code
}

#[test]
fn messages_of_every_length_form() {
    for length in [0, 1, 7, 8, 9, 125, 126, 127, 65535, 65536] {
        let payload = vec![b'x'; length];
        assert_eq!(events(&frame(FIN | BINARY, &payload)), [Event::Binary(payload.into())]);
    }
}

#[test]
fn fragments_are_joined_and_control_frames_may_come_between() {
    let bytes = [
        frame(TEXT, "sn\u{f6}w".as_bytes()[..3].as_ref()),
        frame(FIN | PING, b"are you there"),
        frame(CONTINUATION, "sn\u{f6}w".as_bytes()[3..].as_ref()),
        frame(FIN | PONG, b"yes"),
        frame(FIN | CONTINUATION, b"!"),
    ]
    .concat();
    let (events, result, out) = listen(100, [&bytes[..]]);
    assert_eq!(result, Ok(()));
    let text = Event::Text(Bytes::from("sn\u{f6}w!"));
    assert_eq!(events, [Event::Pong(Bytes::from_static(b"yes")), text]);
    assert_eq!(out, b"\x8a\x0dare you there");
}

#[test]
fn what_may_not_be_sent() {
    assert_eq!(code(b"\x81\x01a"), 1002, "not masked");
    assert_eq!(code(&frame(0xc1, b"a")), 1002, "a reserved bit");
    assert_eq!(code(&frame(FIN | 3, b"a")), 1002, "an unknown kind");
    assert_eq!(code(&frame(FIN | CONTINUATION, b"a")), 1002, "nothing to continue");
    assert_eq!(code(&[frame(TEXT, b"a"), frame(FIN | TEXT, b"a")].concat()), 1002, "interrupted");
    assert_eq!(code(&frame(PING, b"a")), 1002, "a control frame in fragments");
    assert_eq!(code(&frame(FIN | PING, &[0; 126])), 1002, "a long control frame");
    assert_eq!(code(&frame(FIN | TEXT, b"\xff")), 1007, "not UTF-8");
    assert_eq!(code(&frame(FIN | CLOSE, b"\x03")), 1002, "half a code");
    assert_eq!(code(&frame(FIN | CLOSE, &1006u16.to_be_bytes())), 1002, "a code never sent");
}

#[test]
fn messages_too_large_are_refused_when_they_are_announced() {
    assert_eq!(code(&frame(FIN | BINARY, &[0; 1001])[..8]), 1009);
    let (_, result, _) = listen(1000, [&frame(FIN | BINARY, &[0; 1000])[..]]);
    assert_eq!(result, Ok(()));
    let fragments = [frame(BINARY, &[0; 900]), frame(FIN | CONTINUATION, &[0; 101])].concat();
    assert_eq!(code(&fragments), 1009, "all fragments count");
}

#[test]
fn a_close_is_answered_in_kind() {
    let payload = [&1001u16.to_be_bytes()[..], b"going"].concat();
    let (events, result, out) = listen(1000, [&frame(FIN | CLOSE, &payload)[..]]);
    assert_eq!(events, [Event::Close { code: Some(1001) }]);
    assert!(result.is_err(), "nothing may follow");
    assert_eq!(out, [0x88, 2, 0x03, 0xe9]);
}

#[test]
fn frames_to_the_client_are_not_masked_and_stop_at_the_close() {
    let mut server = Server::new(Limits::default(), Output::new());
    server.send_text(&Bytes::from_static(b"hi"));
    server.send_binary(&Bytes::from(vec![1; 126]));
    server.close(1000, "done");
    server.send_text(&Bytes::from_static(b"late"));
    let out = wire::drain(server.output());
    assert_eq!(out[..4], *b"\x81\x02hi");
    assert_eq!(out[4..8], [0x82, 126, 0, 126]);
    assert!(out.ends_with(b"\x88\x06\x03\xe8done"));
}

#[test]
fn the_same_bytes_mean_the_same_however_they_are_cut_or_damaged() {
    for seed in 0..300 {
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let mut bytes = Vec::new();
        for _ in 0..random.random_range(1..6) {
            let first = [FIN | TEXT, TEXT, FIN, 0, FIN | PING, FIN | BINARY, FIN | CLOSE];
            let payload = vec![b'a'; random.random_range(0..200)];
            bytes.extend(frame(first[random.random_range(0..first.len())], &payload));
        }
        for _ in 0..random.random_range(0..3) {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        let whole = listen(300, [&bytes[..]]);
        assert_eq!(listen(300, bytes.chunks(1)), whole);
        assert_eq!(listen(300, bytes.chunks(random.random_range(1..=bytes.len()))), whole);
    }
}
