//! Connections that say nothing, half of something, or far too much.

use crate::client::{assert_serves, put};
use crate::process::Process;
use api::etcdserverpb::RangeRequest;
use prost::Message;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use testkit::Grpc;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const MIB: u64 = 1 << 20;

fn start(flags: &[&str]) -> (tempfile::TempDir, Process) {
    allow_many_files();
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let server = Process::start(&dir.path().join("data"), flags);
    (dir, server)
}

/// As many as this process may have; the server inherits it.
fn allow_many_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours, and the calls only read and write it.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

fn connect(server: &Process) -> TcpStream {
    TcpStream::connect(&server.endpoint).expect("the server accepts connections")
}

#[test]
fn two_thousand_connections_that_do_nothing_cost_little() {
    let (_dir, server) = start(&[]);
    assert_serves(&server.endpoint);
    let before = server.resident_bytes();
    let mut idle = Vec::new();
    for i in 0..2000 {
        let mut socket = connect(&server);
        let begun: &[u8] = match i % 8 {
            0 => b"",
            1 => b"P",
            2 => &PREFACE[..20],
            3 => PREFACE,
            4 => &[PREFACE, &SETTINGS[..5]].concat(),
            5 => &[PREFACE, &SETTINGS].concat(),
            6 => b"GET /hea",
            _ => b"POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{",
        };
        socket.write_all(begun).expect("it takes the first bytes");
        idle.push(socket);
    }
    assert_serves(&server.endpoint);
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 64 * MIB, "2000 idle connections cost {} MiB", grown / MIB);
    // Half of them end without a word, the others at once.
    for (i, socket) in idle.iter().enumerate() {
        if i % 2 == 0 {
            socket.shutdown(Shutdown::Write).expect("a connection can be closed by half");
        }
    }
    assert_serves(&server.endpoint);
    drop(idle);
    assert_serves(&server.endpoint);
}

#[test]
fn garbage_after_the_preface_ends_only_that_connection() {
    let (_dir, server) = start(&[]);
    let frames: [&[u8]; 8] = [
        // A frame that is too long.
        &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1],
        // Data, headers and continuation where they may not be.
        &[0, 0, 1, 0, 0, 0, 0, 0, 1, 0],
        &[0, 0, 1, 1, 4, 0, 0, 0, 0, 0],
        &[0, 0, 1, 9, 4, 0, 0, 0, 1, 0],
        // Headers that do not decode.
        &[0, 0, 4, 1, 5, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff],
        // Windows of nothing and of too much.
        &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff],
        // A push.
        &[0, 0, 4, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2],
    ];
    for frame in frames {
        let mut socket = connect(&server);
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("it is not zero");
        socket.write_all(&[PREFACE, &SETTINGS, frame].concat()).expect("it reads");
        let mut answer = Vec::new();
        // Either is an end: a close, or a reset because not all was read.
        if let Err(error) = socket.read_to_end(&mut answer) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{frame:?}");
        }
        assert_serves(&server.endpoint);
    }
}

/// Sends `unit` again and again, up to `bytes`, while the server takes it; answers are thrown away.
fn flood(server: &Process, unit: &[u8], bytes: usize) -> Flooded {
    let mut socket = connect(server);
    let mut reader = socket.try_clone().expect("a socket can be cloned");
    let ended = std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while reader.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
    socket.set_write_timeout(Some(Duration::from_secs(10))).expect("it is not zero");
    let start = [PREFACE, &SETTINGS].concat();
    let chunk = unit.repeat((64 << 10) / unit.len());
    let mut sent = socket.write_all(&start);
    for _ in 0..bytes / chunk.len() {
        sent = sent.and_then(|()| socket.write_all(&chunk));
    }
    // Whoever has been closed cannot be closed again.
    let _ = socket.shutdown(Shutdown::Both);
    ended.join().expect("the reader only reads");
    if sent.is_err() { Flooded::CutOff } else { Flooded::Taken }
}

#[derive(Debug, PartialEq, Eq)]
enum Flooded {
    CutOff,
    Taken,
}

#[test]
fn floods_of_frames_are_cut_off() {
    let (_dir, server) = start(&[]);
    assert_serves(&server.endpoint);
    let before = server.resident_bytes();
    let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let priority = [0, 0, 5, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
    let unknown = [0, 0, 0, 99, 0, 0, 0, 0, 0];
    for (unit, what) in [
        (&ping[..], "pings"),
        (&SETTINGS[..], "settings"),
        (&priority[..], "priorities"),
        (&unknown[..], "frames of no known kind"),
    ] {
        assert_eq!(flood(&server, unit, 16 << 20), Flooded::CutOff, "{what}");
        assert_serves(&server.endpoint);
    }
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 64 * MIB, "the floods cost {} MiB", grown / MIB);
}

#[test]
fn a_flood_of_calls_that_are_reset_is_cut_off() {
    let (_dir, server) = start(&[]);
    assert_serves(&server.endpoint);
    let before = server.resident_bytes();
    let mut grpc = Grpc::connect(&server.endpoint);
    for _ in 0..50_000 {
        let call = grpc.open("/etcdserverpb.Watch/Watch", &[]);
        grpc.cancel(call);
    }
    let request = RangeRequest { key: "still".into(), ..Default::default() };
    let call = grpc.begin("/etcdserverpb.KV/Range", &[], request.encode_to_vec().into());
    let answer = grpc.next(call, Duration::from_secs(10));
    assert!(!matches!(answer, Some(Ok(_))), "50 000 resets were taken: {answer:?}");
    assert_serves(&server.endpoint);
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 64 * MIB, "the resets cost {} MiB", grown / MIB);
}

#[test]
fn answers_do_not_pile_up_for_a_client_that_does_not_take_them() {
    let (_dir, server) = start(&[]);
    let mut grpc = Grpc::connect(&server.endpoint);
    for i in 0..100 {
        put(&mut grpc, &format!("key{i}"), vec![b'x'; 1_000_000]).expect("writes are served");
    }
    let before = server.resident_bytes();
    // Eight times all that is there, and nothing of it is taken.
    let mut greedy = Grpc::connect(&server.endpoint);
    let mut calls = Vec::new();
    for i in 0..800 {
        let key = format!("key{}", i % 100).into();
        let request = RangeRequest { key, serializable: i % 2 == 0, ..Default::default() };
        calls.push(greedy.begin("/etcdserverpb.KV/Range", &[], request.encode_to_vec().into()));
    }
    for _ in 0..20 {
        assert_serves(&server.endpoint);
    }
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 200 * MIB, "a client that takes nothing costs {} MiB", grown / MIB);
    // When it takes them at last, they are all there.
    for call in calls {
        let answer = greedy.finish(call).expect("the read is answered");
        assert!(answer.len() > 1_000_000);
    }
}

#[test]
fn unfinished_messages_are_bounded() {
    let (_dir, server) = start(&[]);
    assert_serves(&server.endpoint);
    let before = server.resident_bytes();
    let mut sockets = Vec::new();
    for _ in 0..4 {
        let mut socket = connect(&server);
        socket.set_write_timeout(Some(Duration::from_secs(2))).expect("it is not zero");
        let mut sent = socket.write_all(&[PREFACE, &SETTINGS].concat());
        // 300 calls, each with half a megabyte of a message that says it has one and a half.
        for stream in 0..300u32 {
            sent = sent.and_then(|()| socket.write_all(&half_a_call(stream * 2 + 1)));
        }
        sockets.push((socket, sent.is_ok()));
    }
    assert_serves(&server.endpoint);
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 200 * MIB, "unfinished messages cost {} MiB", grown / MIB);
}

/// The frames of a put whose message never ends.
fn half_a_call(stream: u32) -> Vec<u8> {
    let mut block = vec![0x83, 0x86];
    // `:path` and `content-type`, neither indexed nor compressed.
    let path = b"/etcdserverpb.KV/Put";
    block.extend([0x04, path.len() as u8]);
    block.extend(path);
    let kind = b"application/grpc";
    block.extend([0x0f, 0x10, kind.len() as u8]);
    block.extend(kind);
    let mut frames = frame(1, 4, stream, &block);
    let mut message = vec![0];
    message.extend(1_500_000u32.to_be_bytes());
    frames.extend(frame(0, 0, stream, &message));
    for _ in 0..32 {
        frames.extend(frame(0, 0, stream, &[0x55; 16384]));
    }
    frames
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames are short").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}
