//! Runs the scripts in `tests/h1`: what a client sends, what the owner answers, what goes out.
//! Every input is also fed byte by byte, and must mean the same.

mod wire;

use std::error::Error;
use std::fmt::Write as _;

use bytes::{Bytes, BytesMut};
use goldenscript::{Command, Context, Runner};
use httpcore::h1::{Event, Limits, Server};

struct Script {
    server: Server,
    input: BytesMut,
}

#[test]
fn scripts() {
    let mut paths: Vec<_> = std::fs::read_dir("tests/h1")
        .expect("the scripts are there")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    for path in paths {
        let mut script = Script { server: Server::new(limits()), input: BytesMut::new() };
        println!("{}", path.display());
        goldenscript::run(&mut script, &path).expect("the script runs");
    }
}

fn limits() -> Limits {
    Limits { head_bytes_max: 300, fields_max: 8, body_bytes_max: 40 }
}

impl Runner for Script {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        let mut word = || args.next_pos().map(str::to_string).unwrap_or_default();
        let headers = [("content-type", "text/plain")];
        match command.name.as_str() {
            "connect" => {
                self.server = Server::new(limits());
                self.input.clear();
            }
            "get" => {
                let text = word();
                let alone = split_everywhere(text.as_bytes());
                self.input.extend_from_slice(text.as_bytes());
                let together = self.receive();
                return Ok(format!("{together}{alone}"));
            }
            "respond" => {
                let status = word().parse()?;
                self.server.respond(status, &headers, Bytes::from(word()));
            }
            "start" => self.server.start(word().parse()?, &headers),
            "send" => self.server.send(Bytes::from(word())),
            "finish" => self.server.finish(),
            "upgrade" => self.server.upgrade(&[("upgrade", "websocket"), ("x-evil", "a\r\nb: c")]),
            "shut_down" => self.server.shut_down(),
            other => return Err(format!("no such command: {other}").into()),
        }
        Ok(self.receive())
    }
}

impl Script {
    fn receive(&mut self) -> String {
        let mut out = String::new();
        let mut events = Vec::new();
        let received = self.server.receive(&mut self.input, &mut events);
        for event in events {
            writeln!(out, "{event:?}").expect("a string grows");
        }
        for line in
            String::from_utf8_lossy(&wire::drain(self.server.output())).split_inclusive('\n')
        {
            writeln!(out, "<- {:?}", line).expect("a string grows");
        }
        if let Err(closed) = received {
            writeln!(out, "{closed}").expect("a string grows");
        }
        if self.server.should_close() {
            out.push_str("should close\n");
        }
        if !self.input.is_empty() {
            writeln!(out, "{} bytes left", self.input.len()).expect("a string grows");
        }
        out
    }
}

/// A fresh connection must see the same in `text` as a whole and byte by byte. Says so if not.
fn split_everywhere(text: &[u8]) -> String {
    let listen = |pieces: Vec<&[u8]>| {
        let mut server = Server::new(limits());
        let (mut input, mut said) = (BytesMut::new(), String::new());
        let mut body = Vec::new();
        let mut events = Vec::new();
        for piece in pieces {
            input.extend_from_slice(piece);
            let received = server.receive(&mut input, &mut events);
            for event in events.drain(..) {
                match event {
                    Event::Body { data } => body.extend_from_slice(&data),
                    other => said.push_str(&format!("{other:?}")),
                }
            }
            if let Err(closed) = received {
                return (format!("{said} {closed}"), body);
            }
        }
        (said, body)
    };
    let whole = listen(vec![text]);
    let bytes = listen(text.chunks(1).collect());
    if whole == bytes { String::new() } else { format!("CUT: {whole:?} or {bytes:?}\n") }
}
