//! Command-line flags: one table per command, from which both the parser and the help are made.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use super::Error;

/// One flag: its name, what its value is called (empty for a switch), and a line of help.
pub struct Flag {
    pub name: &'static str,
    pub value: &'static str,
    pub help: &'static str,
}

pub const fn flag(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, help }
}

/// The flags that were given.
#[derive(Debug)]
pub struct Flags {
    given: BTreeMap<&'static str, String>,
}

impl Flags {
    /// Takes `--name value`, `--name=value` and switches, and nothing else.
    pub fn parse(
        args: impl Iterator<Item = OsString>,
        tables: &[&'static [Flag]],
    ) -> Result<Flags, Error> {
        let mut given = BTreeMap::new();
        let mut args = args.map(|arg| arg.to_string_lossy().into_owned());
        while let Some(arg) = args.next() {
            let Some(body) = arg.strip_prefix("--") else {
                return Err(Error::Usage(format!(
                    "unexpected argument {arg:?}; flags begin with --"
                )));
            };
            let (name, inline) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (body, None),
            };
            let known = tables.iter().flat_map(|table| table.iter()).find(|flag| flag.name == name);
            let Some(flag) = known else {
                return Err(Error::Usage(format!("unknown flag --{name}")));
            };
            let value = match (flag.value.is_empty(), inline) {
                (true, None) => "true".to_string(),
                (true, Some(value)) => value,
                (false, Some(value)) => value,
                (false, None) => args.next().ok_or_else(|| {
                    Error::Usage(format!("--{name} needs a value: --{name}={}", flag.value))
                })?,
            };
            given.insert(flag.name, value);
        }
        Ok(Flags { given })
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str)
    }

    pub fn number<N: FromStr>(&self, name: &str) -> Result<Option<N>, Error> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong = || Error::Usage(format!("--{name}={text}: not a number this flag can have"));
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// A count that must be at least one.
    pub fn count(&self, name: &str, default: u64) -> Result<u64, Error> {
        match self.number(name)?.unwrap_or(default) {
            0 => Err(Error::Usage(format!("--{name} must be at least 1"))),
            count => Ok(count),
        }
    }

    pub fn seconds(&self, name: &str) -> Result<Option<Duration>, Error> {
        let Some(seconds) = self.number::<f64>(name)? else { return Ok(None) };
        let wrong = || Error::Usage(format!("--{name}={seconds}: not a number of seconds"));
        Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| wrong())
    }

    pub fn is_set(&self, name: &str) -> Result<bool, Error> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Error::Usage(format!("--{name}={other}: true or false"))),
        }
    }

    /// One of a few words.
    pub fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
        default: T,
    ) -> Result<T, Error> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let found = choices.iter().find(|(word, _)| *word == text);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            Error::Usage(format!("--{name}={text}: one of {}", words.join(", ")))
        })
    }

    /// `--endpoints`, with or without `http://`.
    pub fn endpoints(&self) -> Result<Vec<SocketAddr>, Error> {
        let text = self.text("endpoints").unwrap_or("127.0.0.1:2379");
        text.split(',').map(|endpoint| resolve(endpoint.trim())).collect()
    }
}

fn resolve(endpoint: &str) -> Result<SocketAddr, Error> {
    if endpoint.starts_with("https://") {
        let what = format!("--endpoints={endpoint}: bench speaks no TLS; use an http:// endpoint");
        return Err(Error::Usage(what));
    }
    let bare = endpoint.strip_prefix("http://").unwrap_or(endpoint).trim_end_matches('/');
    let wrong = |why: String| Error::Usage(format!("--endpoints={endpoint}: {why}; use host:port"));
    let mut found = bare.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    found.next().ok_or_else(|| wrong("no address".to_string()))
}

/// The help of some tables, one line per flag.
pub fn help(tables: &[&'static [Flag]]) -> String {
    let mut text = String::new();
    for flag in tables.iter().flat_map(|table| table.iter()) {
        let value = if flag.value.is_empty() { "" } else { "=" };
        let left = format!("--{}{value}{}", flag.name, flag.value);
        text.push_str(&format!("  {left:<24} {}\n", flag.help));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Flag] = &[
        flag("clients", "N", "how many"),
        flag("seconds", "S", "how long"),
        flag("quick", "", "less"),
        flag("endpoints", "LIST", "where"),
    ];

    fn parse(line: &str) -> Result<Flags, Error> {
        Flags::parse(line.split_whitespace().map(OsString::from), &[TABLE])
    }

    fn complaint(line: &str) -> String {
        match parse(line) {
            Err(error) => error.to_string(),
            Ok(flags) => format!("accepted {flags:?}"),
        }
    }

    #[test]
    fn values_come_after_a_space_or_an_equals_sign() {
        let flags = parse("--clients 64 --seconds=1.5 --quick").expect("all known");
        assert_eq!(flags.count("clients", 1).ok(), Some(64));
        assert_eq!(flags.seconds("seconds").ok(), Some(Some(Duration::from_millis(1500))));
        assert!(flags.is_set("quick").expect("a switch"));
        assert!(parse("").expect("nothing").text("clients").is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(complaint("--client 1"), "unknown flag --client");
        assert_eq!(complaint("put"), "unexpected argument \"put\"; flags begin with --");
        assert_eq!(complaint("--clients"), "--clients needs a value: --clients=N");
        let flags = parse("--clients=many --seconds=-1 --quick=2").expect("the names are known");
        let text = |error: Error| error.to_string();
        assert_eq!(
            flags.count("clients", 1).map_err(text),
            Err("--clients=many: not a number this flag can have".to_string())
        );
        assert!(flags.seconds("seconds").is_err());
        assert!(flags.is_set("quick").is_err());
        let none = parse("--clients=0").expect("the name is known");
        assert_eq!(
            none.count("clients", 1).map_err(text),
            Err("--clients must be at least 1".to_string())
        );
    }

    #[test]
    fn endpoints_may_carry_a_scheme() {
        let flags = parse("--endpoints=http://127.0.0.1:1/,127.0.0.1:2").expect("known");
        let ports: Vec<u16> =
            flags.endpoints().expect("both resolve").iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [1, 2]);
        let tls = parse("--endpoints=https://127.0.0.1:1").expect("known");
        assert!(tls.endpoints().expect_err("no TLS").to_string().contains("no TLS"));
        assert!(parse("--endpoints=nowhere").expect("known").endpoints().is_err());
    }
}
