//! A YAML document as a tree, by the rules of the parser etcd uses.
//!
//! They are those of YAML 1.1 where the versions differ (`yes` is true, `017` is octal), a repeated
//! key counts last, and `<<` merges a mapping into another.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

use crate::grammar::parse_int;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Yaml {
    Null,
    Bool(bool),
    /// As JSON would write it.
    Number(String),
    Text(String),
    List(Vec<Yaml>),
    /// In the order of the file, each key once.
    Map(Vec<(String, Yaml)>),
}

/// No settings file comes near these; a file built to exhaust us does.
const DEPTH_MAX: usize = 64;
const NODES_MAX: usize = 100_000;

/// Reads the first document; an empty file is null. The error is like `line 3: …`.
pub(crate) fn parse(text: &str) -> Result<Yaml, String> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes_left: NODES_MAX,
    };
    loop {
        match reader.next()? {
            Event::StreamEnd => return Ok(Yaml::Null),
            Event::DocumentStart(_) => {
                let first = reader.next()?;
                let (root, _) = reader.node(first, 0)?;
                // What follows is not read, but it must be YAML.
                while reader.next()? != Event::DocumentEnd {}
                return Ok(root);
            }
            _ => {}
        }
    }
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Yaml>,
    nodes_left: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, String> {
        match self.parser.next_event() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(complaint(error.marker().line(), error.info())),
            None => Ok(Event::StreamEnd),
        }
    }

    /// The node that begins with this event, and whether it is a plain scalar's text.
    fn node(&mut self, event: Event<'a>, depth: usize) -> Result<(Yaml, Option<String>), String> {
        if depth > DEPTH_MAX {
            return Err(format!("nested deeper than {DEPTH_MAX} levels"));
        }
        self.take_nodes(1)?;
        let (node, anchor, plain) = match event {
            Event::Alias(id) => {
                let contains_itself = "an alias refers to a value that contains it";
                let size = self.anchors.get(&id).ok_or(contains_itself)?.size();
                self.take_nodes(size)?;
                return Ok((self.anchors[&id].clone(), None));
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.suffix == "str");
                let is_plain = style == ScalarStyle::Plain && !is_text;
                let node =
                    if is_plain { resolve(&text) } else { Yaml::Text(text.clone().into_owned()) };
                (node, anchor, is_plain.then(|| text.into_owned()))
            }
            Event::SequenceStart(anchor, _) => (self.sequence(depth)?, anchor, None),
            Event::MappingStart(anchor, _) => (self.mapping(depth)?, anchor, None),
            other => return Err(format!("unexpected {other:?}")),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok((node, plain))
    }

    fn sequence(&mut self, depth: usize) -> Result<Yaml, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Yaml::List(items)),
                event => items.push(self.node(event, depth + 1)?.0),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Yaml, String> {
        let mut pairs: Vec<(String, Yaml)> = Vec::new();
        let mut merged: Vec<(String, Yaml)> = Vec::new();
        loop {
            let (key, plain) = match self.next()? {
                Event::MappingEnd => break,
                event => self.node(event, depth + 1)?,
            };
            let event = self.next()?;
            let (value, _) = self.node(event, depth + 1)?;
            if plain.as_deref() == Some("<<") {
                merge(&mut merged, value)?;
                continue;
            }
            let key = key_text(key)?;
            pairs.retain(|(other, _)| *other != key);
            pairs.push((key, value));
        }
        for (key, value) in merged {
            if !pairs.iter().any(|(other, _)| *other == key) {
                pairs.push((key, value));
            }
        }
        Ok(Yaml::Map(pairs))
    }

    fn take_nodes(&mut self, count: usize) -> Result<(), String> {
        let left = self.nodes_left.checked_sub(count);
        self.nodes_left = left.ok_or("document contains excessive aliasing")?;
        Ok(())
    }
}

/// The reference leaves out what it was parsing, and the number of the first line; and where it was
/// parsing, rather than scanning, it counts lines from zero.
fn complaint(line: usize, info: &str) -> String {
    let (line, info) = match info.strip_prefix("while parsing ").and_then(|s| s.split_once(", ")) {
        Some((_, problem)) => (line.saturating_sub(1), problem),
        None if line == 1 => (0, info),
        None => (line, info),
    };
    if line == 0 { info.into() } else { format!("line {line}: {info}") }
}

fn merge(into: &mut Vec<(String, Yaml)>, from: Yaml) -> Result<(), String> {
    match from {
        Yaml::Map(pairs) => {
            for (key, value) in pairs {
                if !into.iter().any(|(other, _)| *other == key) {
                    into.push((key, value));
                }
            }
            Ok(())
        }
        Yaml::List(items) => items.into_iter().try_for_each(|item| merge(into, item)),
        _ => Err("map merge requires map or sequence of maps as the value".into()),
    }
}

fn key_text(key: Yaml) -> Result<String, String> {
    match key {
        Yaml::Text(text) | Yaml::Number(text) => Ok(text),
        Yaml::Bool(yes) => Ok(yes.to_string()),
        Yaml::Null => Ok("null".into()),
        Yaml::List(_) | Yaml::Map(_) => Err("unsupported map key of a list or a mapping".into()),
    }
}

/// What a scalar without quotes means.
fn resolve(text: &str) -> Yaml {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Yaml::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Yaml::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Yaml::Bool(false);
        }
        _ => {}
    }
    let bare = text.replace('_', "");
    if bare.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        if let Ok(number) = parse_int(&bare) {
            return Yaml::Number(number.to_string());
        }
        if is_float(&bare)
            && let Ok(number) = bare.parse::<f64>()
            && number.is_finite()
        {
            return Yaml::Number(number.to_string());
        }
    }
    Yaml::Text(text.into())
}

/// Digits with at most one dot, then perhaps an exponent.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(mantissa),
    };
    is_mantissa && exponent.is_none_or(|e| is_digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

impl Yaml {
    /// The word Go's JSON decoder has for it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "object",
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::List(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            Self::Map(pairs) => 1 + pairs.iter().map(|(_, value)| value.size()).sum::<usize>(),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, Yaml)]) -> Yaml {
        Yaml::Map(pairs.iter().map(|(key, value)| (key.to_string(), value.clone())).collect())
    }

    #[test]
    fn scalars_mean_what_they_mean_to_etcd() {
        for (text, wanted) in [
            ("~", Yaml::Null),
            ("yes", Yaml::Bool(true)),
            ("Off", Yaml::Bool(false)),
            ("0x10", Yaml::Number("16".into())),
            ("017", Yaml::Number("15".into())),
            ("1_000", Yaml::Number("1000".into())),
            ("-5", Yaml::Number("-5".into())),
            ("1e1", Yaml::Number("10".into())),
            ("1.5", Yaml::Number("1.5".into())),
            ("99999999999999999999", Yaml::Number("100000000000000000000".into())),
            ("5s", Yaml::Text("5s".into())),
            ("'5'", Yaml::Text("5".into())),
            ("!!str 5", Yaml::Text("5".into())),
            ("http://a:1,http://b:2", Yaml::Text("http://a:1,http://b:2".into())),
        ] {
            assert_eq!(parse(text), Ok(wanted), "{text}");
        }
        assert_eq!(parse(""), Ok(Yaml::Null));
        assert_eq!(parse("# nothing\n"), Ok(Yaml::Null));
    }

    #[test]
    fn mappings_keep_the_last_of_equal_keys_and_merge() {
        let one = Yaml::Number("1".into());
        let two = Yaml::Number("2".into());
        assert_eq!(parse("{a: 1, a: 2}"), Ok(map(&[("a", two.clone())])));
        assert_eq!(
            parse("base: &b {a: 1, c: 1}\nmine:\n  <<: *b\n  a: 2\n"),
            Ok(map(&[
                ("base", map(&[("a", one.clone()), ("c", one.clone())])),
                ("mine", map(&[("a", two), ("c", one)])),
            ]))
        );
    }

    #[test]
    fn json_is_yaml() {
        let wanted = map(&[("a", Yaml::List(vec![Yaml::Text("x".into()), Yaml::Bool(true)]))]);
        assert_eq!(parse("{\"a\": [\"x\", true]}"), Ok(wanted));
    }

    #[test]
    fn damage_is_reported_with_its_line() {
        assert!(parse("a: 1\nb: c: d\n").unwrap_err().starts_with("line 2: "));
        assert!(parse("{").is_err());
        assert!(parse("a: *nowhere\n").is_err());
    }

    #[test]
    fn a_file_built_to_exhaust_us_is_refused() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for n in 1..9 {
            let refs = vec![format!("*a{}", n - 1); 10].join(",");
            bomb.push_str(&format!("a{n}: &a{n} [{refs}]\n"));
        }
        assert_eq!(parse(&bomb), Err("document contains excessive aliasing".into()));
        assert!(parse(&"[".repeat(10_000)).is_err());
    }
}
