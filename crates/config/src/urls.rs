//! URLs as etcd reads them: a scheme, a `host:port`, and no path; or the path of a socket.
//!
//! The error texts are those that Go's `net/url` and etcd give, because scripts compare them.

use std::fmt;

use crate::quote::quote;

/// One checked URL. It prints as it was written (blanks around it removed, scheme in lower case).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Url {
    text: String,
    scheme: Scheme,
    /// `host:port`, IPv6 in brackets; for sockets whatever stands between `//` and the path.
    address: String,
    /// Only sockets have one.
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    Http,
    Https,
    Unix,
    Unixs,
}

impl Url {
    pub fn parse(input: &str) -> Result<Self, String> {
        let input = input.trim();
        let parts = Parts::split(input)?;
        let scheme = match parts.scheme.as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            "unix" => Scheme::Unix,
            "unixs" => Scheme::Unixs,
            _ => return Err(format!("URL scheme must be http, https, unix, or unixs: {input}")),
        };
        if matches!(scheme, Scheme::Http | Scheme::Https) {
            if split_host_port(&parts.address).is_err() {
                return Err(format!("URL address does not have the form \"host:port\": {input}"));
            }
            if !parts.path.is_empty() {
                return Err(format!("URL must not contain a path: {input}"));
            }
        }
        let text = match input.split_once(':') {
            Some((_, rest)) if !parts.scheme.is_empty() => format!("{}:{rest}", parts.scheme),
            _ => input.to_string(),
        };
        Ok(Self { text, scheme, address: parts.address, path: parts.path })
    }

    /// A URL made of known parts, for addresses this member finds out by itself.
    pub fn from_host_port(scheme: Scheme, host: &str, port: &str) -> Result<Self, String> {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
        Self::parse(&format!("{}://{host}:{port}", scheme.as_str()))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// `host:port` as written.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The host without brackets.
    pub fn host(&self) -> &str {
        split_host_port(&self.address).map_or(self.address.as_str(), |(host, _)| host)
    }

    pub fn port(&self) -> &str {
        split_host_port(&self.address).map_or("", |(_, port)| port)
    }

    pub fn is_socket(&self) -> bool {
        matches!(self.scheme, Scheme::Unix | Scheme::Unixs)
    }

    pub fn is_tls(&self) -> bool {
        matches!(self.scheme, Scheme::Https | Scheme::Unixs)
    }

    /// Where a socket lives: etcd joins what stands for the host and the path.
    pub fn socket_path(&self) -> String {
        format!("{}{}", self.address, self.path)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Unix => "unix",
            Self::Unixs => "unixs",
        }
    }
}

/// A comma-separated list, sorted.
pub fn parse_list(input: &str) -> Result<Vec<Url>, String> {
    let mut urls = input.split(',').map(Url::parse).collect::<Result<Vec<_>, _>>()?;
    urls.sort();
    Ok(urls)
}

/// A comma-separated list, sorted, each URL once: the rule for flags. (The file keeps doubles.)
pub fn parse_unique(input: &str) -> Result<Vec<Url>, String> {
    let mut urls = parse_list(input)?;
    urls.dedup();
    Ok(urls)
}

pub fn texts(urls: &[Url]) -> Vec<String> {
    urls.iter().map(Url::to_string).collect()
}

/// Host and port of `host:port`, with Go's reasons when it is not one.
pub(crate) fn split_host_port(address: &str) -> Result<(&str, &str), String> {
    let refuse = |why: &str| match address {
        "" => Err(why.to_string()),
        address => Err(format!("address {address}: {why}")),
    };
    let Some(colon) = address.rfind(':') else { return refuse("missing port in address") };
    let (host, port) = (&address[..colon], &address[colon + 1..]);
    if let Some(inner) = host.strip_prefix('[') {
        return match inner.strip_suffix(']') {
            Some(bare) if !bare.contains(['[', ']']) => Ok((bare, port)),
            _ if address.ends_with(']') => refuse("missing port in address"),
            _ => refuse("missing ']' in address"),
        };
    }
    if host.contains(':') {
        return refuse("too many colons in address");
    }
    Ok((host, port))
}

/// The pieces that Go's URL parser would hand to etcd.
struct Parts {
    scheme: String,
    address: String,
    path: String,
}

impl Parts {
    fn split(input: &str) -> Result<Self, String> {
        let refuse = |why: String| Err(format!("parse {}: {why}", quote(input)));
        if input.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return refuse("net/url: invalid control character in URL".into());
        }
        let input_without_fragment = input.split('#').next().unwrap_or_default();
        let (scheme, rest) = match split_scheme(input_without_fragment) {
            Ok(split) => split,
            Err(why) => return refuse(why.into()),
        };
        let rest = rest.split('?').next().unwrap_or_default();
        let Some(after) = rest.strip_prefix("//") else {
            let first_segment = rest.split('/').next().unwrap_or_default();
            if scheme.is_empty() && first_segment.contains(':') {
                return refuse("first path segment in URL cannot contain colon".into());
            }
            // `unix:name` has no slashes at all; etcd then knows neither host nor path.
            return Ok(Self { scheme, address: String::new(), path: rest.into() });
        };
        let (authority, path) = after.find('/').map_or((after, ""), |at| after.split_at(at));
        let address = authority.rsplit('@').next().unwrap_or_default();
        match check_authority(address) {
            Ok(()) => Ok(Self { scheme, address: address.into(), path: path.into() }),
            Err(why) => refuse(why),
        }
    }
}

fn split_scheme(input: &str) -> Result<(String, &str), &'static str> {
    for (at, byte) in input.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme"),
            b':' => return Ok((input[..at].to_ascii_lowercase(), &input[at + 1..])),
            _ => break,
        }
    }
    Ok((String::new(), input))
}

fn check_authority(address: &str) -> Result<(), String> {
    let bytes = address.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'%' => {
                let escape = address.get(at..(at + 3).min(address.len())).unwrap_or("%");
                let code = escape.get(1..3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
                // Only what has no letter of its own may be escaped in a host, and % itself.
                if !code.is_some_and(|code| code >= 0x80 || code == b'%') {
                    return Err(format!("invalid URL escape {}", quote(escape)));
                }
            }
            b' ' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                let shown = quote(&char::from(byte).to_string());
                return Err(format!("invalid character {shown} in host name"));
            }
            _ => {}
        }
    }
    let port = if address.starts_with('[') {
        match address.rfind(']') {
            Some(end) => &address[end + 1..],
            None => return Err("missing ']' in host".into()),
        }
    } else {
        address.rfind(':').map_or("", |at| &address[at..])
    };
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    if is_port { Ok(()) } else { Err(format!("invalid port {} after host", quote(port))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_up_its_parts() {
        let url = Url::parse(" HTTP://[::1]:2379 ").unwrap();
        assert_eq!(url.to_string(), "http://[::1]:2379");
        assert_eq!(
            (url.host(), url.port(), url.is_socket(), url.is_tls()),
            ("::1", "2379", false, false)
        );
        let socket = Url::parse("unixs://localhost:1/x.sock").unwrap();
        assert_eq!((socket.socket_path().as_str(), socket.is_tls()), ("localhost:1/x.sock", true));
        assert_eq!(Url::parse("unix:///run/x").unwrap().socket_path(), "/run/x");
        assert_eq!(Url::parse("http://a:").unwrap().port(), "", "an empty port is let through");
        let made = Url::from_host_port(Scheme::Http, "fe80::1", "1").unwrap();
        assert_eq!(made.as_str(), "http://[fe80::1]:1");
    }

    #[test]
    fn what_is_not_host_and_port_is_told_as_go_tells_it() {
        for (address, error) in [
            ("", "missing port in address"),
            ("a", "address a: missing port in address"),
            ("::1:2", "address ::1:2: too many colons in address"),
            ("[::1]", "address [::1]: missing port in address"),
        ] {
            assert_eq!(split_host_port(address), Err(error.to_string()));
        }
    }

    #[test]
    fn lists_are_sorted_and_flags_drop_doubles() {
        let input = "http://b:1,http://a:1, http://b:1";
        assert_eq!(texts(&parse_list(input).unwrap()), ["http://a:1", "http://b:1", "http://b:1"]);
        assert_eq!(texts(&parse_unique(input).unwrap()), ["http://a:1", "http://b:1"]);
    }
}
