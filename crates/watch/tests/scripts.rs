//! What clients of watch streams are told, as transcripts.
//!
//! A line `s1 #0 @5: +a=1 -b` is a response on stream s1 for watch id 0, with revision 5 in its
//! header, saying that a was put and b deleted. The revision of an event is shown behind it where
//! it is not the header's, and the previous pair in brackets.

mod common;

use api::etcdserverpb::watch_create_request::FilterType;
use api::etcdserverpb::watch_request::RequestUnion;
use api::etcdserverpb::{
    WatchCancelRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
};
use api::mvccpb::{self, event::EventType};
use bytes::Bytes;
use common::{Model, decode};
use goldenscript::{Argument, Command, Context};
use std::error::Error;
use std::fmt::Write;
use watch::{Config, Delivery, StreamKey, Watches};

type Outcome = Result<String, Box<dyn Error>>;

const RAFT_TERM: u64 = 3;

struct Script {
    model: Model,
    config: Config,
    watches: Watches,
}

impl Script {
    fn new() -> Script {
        let mut config = Config::new(1, 2);
        config.progress_interval_ms = 1000;
        let model = Model::new();
        let watches = Watches::new(config.clone(), model.revision());
        Script { model, config, watches }
    }

    fn request(&mut self, stream: StreamKey, union: Option<RequestUnion>, out: &mut Vec<Delivery>) {
        let request = WatchRequest { request_union: union };
        self.watches.request(stream, request, RAFT_TERM, out);
    }
}

impl goldenscript::Runner for Script {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Outcome {
        let mut args = command.consume_args();
        let mut out = Vec::new();
        let mut said = String::new();
        match command.name.as_str() {
            // Sets limits and begins anew.
            "config" => {
                while let Some((key, value)) = args.next_key() {
                    let limit: usize = value.parse()?;
                    match key {
                        "fragment" => self.config.fragment_bytes = limit,
                        "revisions" => self.config.catch_up_revisions_max = limit,
                        "watchers" => self.config.catch_up_watchers_max = limit,
                        "stream" => self.config.stream_bytes_max = limit,
                        _ => return Err(format!("unknown limit {key}").into()),
                    }
                }
                self.watches = Watches::new(self.config.clone(), self.model.revision());
            }
            "open" => {
                let jitter = args.take_key("jitter").unwrap_or("0").parse()?;
                while let Some(name) = args.next_pos() {
                    self.watches.open(stream(name)?, jitter);
                }
            }
            "close" => self.watches.close(stream(args.next_pos().ok_or("which?")?)?),
            "block" => self.watches.set_blocked(stream(args.next_pos().ok_or("which?")?)?, true),
            "unblock" => {
                self.watches.set_blocked(stream(args.next_pos().ok_or("which?")?)?, false);
            }
            // watch STREAM KEY [to=END] [from=REVISION] [id=ID] [prev] [fragment] [progress] ...
            "watch" => {
                let name = stream(args.next_pos().ok_or("which stream?")?)?;
                let key = args.next_pos().unwrap_or_default();
                let end = args.take_key("to").unwrap_or_default();
                let mut create = WatchCreateRequest {
                    key: bytes(key),
                    range_end: bytes(end),
                    start_revision: args.take_key("from").unwrap_or("0").parse()?,
                    watch_id: args.take_key("id").unwrap_or("0").parse()?,
                    ..WatchCreateRequest::default()
                };
                let denied = args.take_key("denied");
                while let Some(flag) = args.next_pos() {
                    match flag {
                        "prev" => create.prev_kv = true,
                        "fragment" => create.fragment = true,
                        "progress" => create.progress_notify = true,
                        "noput" => create.filters.push(FilterType::Noput as i32),
                        "nodelete" => create.filters.push(FilterType::Nodelete as i32),
                        "nonsense" => create.filters.push(99),
                        _ => return Err(format!("unknown flag {flag}").into()),
                    }
                }
                match denied {
                    Some(why) => self.watches.refuse(name, &create, why, RAFT_TERM, &mut out),
                    None => self.request(name, Some(RequestUnion::CreateRequest(create)), &mut out),
                }
            }
            "cancel" => {
                let name = stream(args.next_pos().ok_or("which stream?")?)?;
                let watch_id = args.next_pos().ok_or("which id?")?.parse()?;
                let cancel = RequestUnion::CancelRequest(WatchCancelRequest { watch_id });
                self.request(name, Some(cancel), &mut out);
            }
            "progress" => {
                let name = stream(args.next_pos().ok_or("which stream?")?)?;
                let progress = RequestUnion::ProgressRequest(WatchProgressRequest {});
                self.request(name, Some(progress), &mut out);
            }
            "empty-request" => {
                let name = stream(args.next_pos().ok_or("which stream?")?)?;
                self.request(name, None, &mut out);
            }
            // write a=1 -b: puts and deletes in one revision. unheard: the table is not told.
            "write" | "unheard" => {
                let mut ops = Vec::new();
                for arg in args.by_ref() {
                    ops.push(match arg {
                        Argument::KeyValue(key, value) => (bytes(key), Some(bytes(value))),
                        Argument::Positional(key) => {
                            (bytes(key.strip_prefix('-').ok_or("KEY=VALUE or -KEY")?), None)
                        }
                        other => return Err(format!("unexpected argument {other}").into()),
                    });
                }
                let change = self.model.write(&ops);
                if command.name == "write" {
                    let changes: Vec<_> = change.into_iter().collect();
                    self.watches.changed(&changes, RAFT_TERM, &self.model, &mut out);
                }
            }
            // Many revisions in one call, each putting the key once.
            "writes" => {
                let key = bytes(args.next_pos().ok_or("which key?")?);
                let times: usize = args.take_key("times").ok_or("how often?")?.parse()?;
                let size: usize = args.take_key("bytes").unwrap_or("1").parse()?;
                let value = Bytes::from(vec![b'x'; size]);
                let put = [(key, Some(value))];
                let changes: Vec<_> = (0..times).filter_map(|_| self.model.write(&put)).collect();
                self.watches.changed(&changes, RAFT_TERM, &self.model, &mut out);
            }
            "restored" => self.watches.restored(self.model.revision()),
            "compact" => self.model.compacted = args.next_pos().ok_or("to where?")?.parse()?,
            "damage" => {
                let revision = args.next_pos().ok_or("which revision?")?.parse()?;
                self.model.damaged.insert(revision);
            }
            // One step. `all`: as many as it takes.
            "catch-up" => {
                let all = args.next_pos() == Some("all");
                for step in 1.. {
                    if step > 1000 {
                        return Err("there is always more to do".into());
                    }
                    let more = self.watches.catch_up(&self.model, RAFT_TERM, &mut out);
                    for (from, upto) in self.model.reads.borrow_mut().drain(..) {
                        writeln!(said, "read {from}..={upto}")?;
                    }
                    said.push_str(&transcript(&std::mem::take(&mut out)));
                    let more = match more {
                        Ok(more) => more,
                        Err(error) => {
                            writeln!(said, "damage: {error}")?;
                            true
                        }
                    };
                    if !more || !all {
                        writeln!(said, "{}", if more { "more to do" } else { "done" })?;
                        break;
                    }
                }
            }
            "tick" => {
                let now_ms = args.next_pos().ok_or("when?")?.parse()?;
                self.watches.tick(now_ms, RAFT_TERM, &mut out);
            }
            "counts" => writeln!(said, "{:?}", self.watches.counts())?,
            name => return Err(format!("unknown command {name}").into()),
        }
        args.reject_next()?;
        Ok(said + &transcript(&out))
    }
}

fn stream(name: &str) -> Result<StreamKey, Box<dyn Error>> {
    Ok(StreamKey(name.strip_prefix('s').ok_or("streams are s1, s2, ...")?.parse()?))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn transcript(out: &[Delivery]) -> String {
    out.iter().map(|delivery| line(delivery.stream, &decode(delivery))).collect()
}

fn line(StreamKey(stream): StreamKey, response: &WatchResponse) -> String {
    let header = response.header.expect("every response has a header");
    assert_eq!((header.cluster_id, header.member_id, header.raft_term), (1, 2, RAFT_TERM));
    let mut line = format!("s{stream} #{} @{}", response.watch_id, header.revision);
    let flags = [
        (response.created, "created"),
        (response.canceled, "canceled"),
        (response.fragment, "fragment"),
    ];
    for (_, flag) in flags.into_iter().filter(|(set, _)| *set) {
        write!(line, " {flag}").expect("strings take all");
    }
    if response.compact_revision != 0 {
        write!(line, " compacted={}", response.compact_revision).expect("strings take all");
    }
    if !response.cancel_reason.is_empty() {
        write!(line, " {:?}", response.cancel_reason).expect("strings take all");
    }
    if !response.events.is_empty() {
        line.push(':');
    }
    for event in &response.events {
        line.push(' ');
        line.push_str(&event_text(event, header.revision));
    }
    line + "\n"
}

fn event_text(event: &mvccpb::Event, header_revision: i64) -> String {
    let kv = event.kv.as_ref().expect("every event has a pair");
    let key = String::from_utf8_lossy(&kv.key);
    let mut text = match event.r#type() {
        EventType::Put => format!("+{key}={}", shortened(&kv.value)),
        EventType::Delete => format!("-{key}"),
    };
    if kv.mod_revision != header_revision {
        write!(text, "@{}", kv.mod_revision).expect("strings take all");
    }
    if let Some(before) = &event.prev_kv {
        write!(text, "({}@{})", shortened(&before.value), before.mod_revision)
            .expect("strings take all");
    }
    text
}

fn shortened(value: &[u8]) -> String {
    match value.len() {
        0..=8 => String::from_utf8_lossy(value).into_owned(),
        bytes => format!("<{bytes} bytes>"),
    }
}

macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() -> std::io::Result<()> {
            goldenscript::run(&mut Script::new(), concat!("tests/scripts/", stringify!($name)))
        })*
    };
}

scripts! {
    create, refusals, ids, ranges_and_filters, whole_revisions, prev_kv, fragments, past_and_future,
    progress_request, periodic_progress, slow_streams, compaction, snapshot, damage, sharing,
}
