//! Runs the scripts in `tests/h2`: what a client sends, what the owner answers, and what follows.
//!
//! ```text
//! connect key=value...      a fresh connection; limits and settings by name
//! hello key=value...        the client's preface and SETTINGS (numbers)
//! call id [path] [end] name=value...   HEADERS of a gRPC call
//! headers id [end] [open] name=value... HEADERS exactly as given
//! message id text [end]     one gRPC message in one DATA frame
//! data id bytes [end]       DATA exactly as given (\xNN escapes)
//! frame kind flags id bytes any frame at all
//! ping, window, rst         control frames
//! time ms                   the clock moves on
//! any of these with times=n repeats it and shows the last time only
//! unary, error, start, send, finish, reset, shut_down, go_away   the owner's part
//! ```

mod wire;

use std::error::Error;
use std::fmt::Write as _;

use bytes::{Bytes, BytesMut};
use goldenscript::{ArgumentConsumer, Command, Context, Runner};
use httpcore::h2::{Event, Limits, Server, Settings, StreamId};
use httpcore::hpack::Decoder;
use wire::{describe, drain, frame, literal, message};

struct Script {
    server: Server,
    decoder: Decoder,
    input: BytesMut,
    now_ms: u64,
    ids: Vec<StreamId>,
}

#[test]
fn scripts() {
    let mut paths: Vec<_> = std::fs::read_dir("tests/h2")
        .expect("the scripts are there")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    for path in paths {
        let server = Server::new(Settings::default(), Limits::default());
        let mut script = Script {
            server,
            decoder: Decoder::default(),
            input: BytesMut::new(),
            now_ms: 0,
            ids: Vec::new(),
        };
        println!("{}", path.display());
        goldenscript::run(&mut script, &path).expect("the script runs");
    }
}

impl Runner for Script {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        let times = args.take_key("times").map_or(Ok(1), str::parse::<u32>)?;
        let mut bytes = Vec::new();
        match command.name.as_str() {
            "connect" => self.connect(&mut args)?,
            "hello" => {
                bytes.extend(wire::PREFACE);
                let mut settings = Vec::new();
                for (name, value) in pairs(&mut args) {
                    settings.extend(name.parse::<u16>()?.to_be_bytes());
                    settings.extend(value.parse::<u32>()?.to_be_bytes());
                }
                bytes.extend(frame(4, 0, 0, &settings));
            }
            "call" => {
                let id = number(&mut args)?;
                let mut path = "/etcdserverpb.KV/Range".to_string();
                let mut flags = 4;
                for word in words(&mut args) {
                    if word == "end" {
                        flags |= 1;
                    } else {
                        path = word;
                    }
                }
                let mut block: Vec<u8> = [
                    (":method", "POST"),
                    (":scheme", "http"),
                    (":path", &path),
                    ("content-type", "application/grpc"),
                ]
                .iter()
                .flat_map(|(name, value)| literal(name, value))
                .collect();
                block
                    .extend(pairs(&mut args).iter().flat_map(|(name, value)| literal(name, value)));
                bytes = frame(1, flags, id, &block);
            }
            "headers" => {
                let id = number(&mut args)?;
                let words = words(&mut args);
                let mut flags = if words.contains(&"open".to_string()) { 0 } else { 4 };
                flags |= u8::from(words.contains(&"end".to_string()));
                let fields = pairs(&mut args);
                let block: Vec<u8> =
                    fields.iter().flat_map(|(name, value)| literal(name, value)).collect();
                bytes = frame(1, flags, id, &block);
            }
            "message" | "data" => {
                let id = number(&mut args)?;
                let text = text(&mut args)?;
                let end = u8::from(words(&mut args).contains(&"end".to_string()));
                let payload = if command.name == "data" { text } else { message(&text) };
                bytes = frame(0, end, id, &payload);
            }
            "frame" => {
                let kind = number(&mut args)? as u8;
                let flags = number(&mut args)? as u8;
                let id = number(&mut args)?;
                bytes = frame(kind, flags, id, &text(&mut args)?);
            }
            "ping" => bytes = frame(6, 0, 0, b"12345678"),
            "ack" => bytes = frame(6, 1, 0, &text(&mut args)?),
            "window" => {
                let id = number(&mut args)?;
                bytes = frame(8, 0, id, &number(&mut args)?.to_be_bytes());
            }
            "rst" => {
                let id = number(&mut args)?;
                bytes = frame(3, 0, id, &number(&mut args)?.to_be_bytes());
            }
            "time" => self.now_ms += u64::from(number(&mut args)?),
            "raw" => bytes = text(&mut args)?,
            "state" => {
                let pending: Vec<_> =
                    self.ids.iter().map(|&id| (id, self.server.pending(id))).collect();
                return Ok(format!(
                    "active={} idle={} pending={pending:?}",
                    self.server.active_streams(),
                    self.server.is_idle()
                ));
            }
            _ => self.answer(command, &mut args)?,
        }
        args.reject_next()?;
        let mut out = String::new();
        for _ in 0..times {
            out = self.exchange(&bytes)?;
        }
        Ok(out)
    }
}

impl Script {
    fn connect(&mut self, args: &mut ArgumentConsumer<'_>) -> Result<(), Box<dyn Error>> {
        let mut settings = Settings::default();
        let mut limits = Limits::default();
        for (name, value) in pairs(args) {
            match name.as_str() {
                "streams" => settings.max_concurrent_streams = value.parse()?,
                "window" => settings.initial_window = value.parse()?,
                "connection_window" => settings.connection_window = value.parse()?,
                "header_list" => settings.header_list_max = value.parse()?,
                "message" => limits.message_bytes_max = value.parse()?,
                "partial" => limits.partial_bytes_max = value.parse()?,
                "pings" => limits.ping_interval_min_ms = value.parse()?,
                "resets" => limits.resets_burst = value.parse()?,
                "nuisance" => limits.nuisance_per_second = value.parse()?,
                "plain" => limits.plain_http = value.parse()?,
                _ => return Err(format!("no such limit: {name}").into()),
            }
        }
        self.server = Server::new(settings, limits);
        self.decoder = Decoder::default();
        self.input.clear();
        self.ids.clear();
        self.now_ms = 0;
        Ok(())
    }

    fn answer(
        &mut self,
        command: &Command,
        args: &mut ArgumentConsumer<'_>,
    ) -> Result<(), Box<dyn Error>> {
        match command.name.as_str() {
            "shut_down" => self.server.shut_down(),
            "go_away" => self.server.go_away(0, "bye"),
            name => {
                let number = number(args)?;
                let id = self.ids.iter().copied().find(|id| id.number() == number);
                let id = id.ok_or("no such stream was ever seen")?;
                match name {
                    "unary" => self.server.respond_unary(id, &[text(args)?.into()]),
                    "start" => self.server.start_response(id),
                    "send" => self.server.send_message(id, &[text(args)?.into()]),
                    "zeros" => {
                        let zeros = vec![0; args.next_pos().ok_or("how many?")?.parse::<usize>()?];
                        self.server.send_message(id, &[zeros.into()]);
                    }
                    "finish" | "error" => {
                        let code = args.next_pos().ok_or("which code?")?.parse()?;
                        let text = args.next_pos().unwrap_or_default();
                        self.server.finish(id, code, text);
                    }
                    "reset" => self.server.reset(id, 8),
                    "http" => {
                        let headers = [("content-type", "text/plain")];
                        let body = Bytes::from(text(args)?);
                        self.server.respond_http(id, 200, &headers, body);
                    }
                    _ => return Err(format!("no such command: {name}").into()),
                }
            }
        }
        Ok(())
    }

    fn exchange(&mut self, bytes: &[u8]) -> Result<String, Box<dyn Error>> {
        let mut out = String::new();
        self.input.extend_from_slice(bytes);
        let mut events = Vec::new();
        let received = self.server.receive(&mut self.input, self.now_ms, &mut events);
        for event in events {
            if let Event::Request { id, .. } | Event::HttpRequest { id, .. } = event {
                self.ids.push(id);
            }
            writeln!(out, "{event:?}")?;
        }
        if let Err(closed) = received {
            writeln!(out, "{closed}")?;
        }
        out.push_str(&describe(&drain(self.server.output()), &mut self.decoder));
        Ok(out)
    }
}

fn number(args: &mut ArgumentConsumer<'_>) -> Result<u32, Box<dyn Error>> {
    Ok(args.next_pos().ok_or("a number is missing")?.parse()?)
}

/// Text in which `\xNN` may stand for any byte: every character is one.
fn text(args: &mut ArgumentConsumer<'_>) -> Result<Vec<u8>, Box<dyn Error>> {
    let text = args.next_pos().ok_or("text is missing")?;
    text.chars().map(|c| u8::try_from(c).map_err(|_| "a character above 0xff".into())).collect()
}

fn words(args: &mut ArgumentConsumer<'_>) -> Vec<String> {
    std::iter::from_fn(|| args.next_pos()).map(str::to_string).collect()
}

fn pairs(args: &mut ArgumentConsumer<'_>) -> Vec<(String, String)> {
    let own = |(key, value): (&str, &str)| (key.to_string(), value.to_string());
    std::iter::from_fn(|| args.next_key()).map(own).collect()
}
