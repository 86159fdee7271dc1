//! What HTTP callers may do, and what every answer to them carries.

use httpcore::h2::Headers;

/// The operator's rules for HTTP on the client port.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `*`, or the origins that browsers may call from.
    pub cors: Vec<String>,
    /// `*`, or the hosts that a request may name.
    pub host_whitelist: Vec<String>,
    pub gateway: bool,
}

/// A header and its value.
pub type Field = (&'static str, String);

impl Policy {
    /// Whether a request for this host is taken: a page of another site that has its name point
    /// here must not be able to talk to us.
    pub fn allows_host(&self, host: Option<&str>) -> bool {
        if self.host_whitelist.iter().any(|allowed| allowed == "*") {
            return true;
        }
        let host = host.unwrap_or("");
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        self.host_whitelist.iter().any(|allowed| allowed == name)
    }

    /// The headers that let browsers of allowed origins read the answer.
    pub fn cors_fields(&self, origin: Option<&str>) -> Vec<Field> {
        let allowed = if self.cors.iter().any(|allowed| allowed == "*") {
            "*"
        } else {
            match origin.filter(|origin| self.cors.iter().any(|allowed| allowed == origin)) {
                Some(origin) => origin,
                None => return Vec::new(),
            }
        };
        vec![
            ("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE".into()),
            ("Access-Control-Allow-Origin", allowed.into()),
            ("Access-Control-Allow-Headers", "accept, content-type, authorization".into()),
        ]
    }
}

/// The path, with its escapes resolved, and the query of a request's target; `None` if it has none
/// that makes sense.
pub fn split_target(target: &str) -> Option<(String, &str)> {
    let local = match target.split_once("://") {
        // As proxies ask: the host is in its header too.
        Some((scheme, rest)) if scheme.bytes().all(|b| b.is_ascii_alphabetic()) => {
            rest.find('/').map_or("/", |at| &rest[at..])
        }
        _ => target,
    };
    if !local.starts_with('/') && local != "*" {
        return None;
    }
    let (path, query) = local.split_once('?').unwrap_or((local, ""));
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            let hex = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    Some((String::from_utf8_lossy(&bytes).into_owned(), query))
}

/// Where a path that is not in its plainest form is sent instead: repeated slashes and steps like
/// `..` are taken out, and the gateway's root gets its slash.
pub fn plainer_path(path: &str) -> Option<String> {
    if path == "/v3" {
        return Some("/v3/".into());
    }
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            _ => steps.push(step),
        }
    }
    let mut plain = format!("/{}", steps.join("/"));
    if path.ends_with('/') && plain != "/" {
        plain.push('/');
    }
    (plain != path).then_some(plain)
}

/// A header's first value, if it is text.
pub fn text<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| std::str::from_utf8(value).ok())
}

/// The explanation for a host that is not on the list.
pub fn refused_host(host: &str) -> String {
    format!(
        "This server does not answer for the host {host:?}: it is not on its list (--host-whitelist).\n\
         The check keeps pages of other sites from reaching it through DNS rebinding (CVE-2018-5702).\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(cors: &[&str], hosts: &[&str]) -> Policy {
        let list = |items: &[&str]| items.iter().map(|item| item.to_string()).collect();
        Policy { cors: list(cors), host_whitelist: list(hosts), gateway: true }
    }

    #[test]
    fn hosts_are_compared_without_their_port() {
        let policy = policy(&["*"], &["example.com", "::1"]);
        assert!(policy.allows_host(Some("example.com")));
        assert!(policy.allows_host(Some("example.com:2379")));
        assert!(policy.allows_host(Some("[::1]:2379")));
        assert!(!policy.allows_host(Some("evil.com")));
        assert!(!policy.allows_host(None));
    }

    #[test]
    fn targets_come_in_several_forms() {
        let split = |target| split_target(target).map(|(path, query)| (path, query.to_string()));
        let expected = |path: &str, query: &str| Some((path.to_string(), query.to_string()));
        assert_eq!(split("/he%61lth?a=%41"), expected("/health", "a=%41"));
        assert_eq!(split("http://host:1/health?a"), expected("/health", "a"));
        assert_eq!(split("http://host"), expected("/", ""));
        assert_eq!(split("/a?b=http://c/d"), expected("/a", "b=http://c/d"));
        assert_eq!(split("*"), expected("*", ""));
        for bad in ["health", "", "/a%2", "/a%zz", "host:80"] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }

    #[test]
    fn paths_have_one_form() {
        assert_eq!(plainer_path("/v3").as_deref(), Some("/v3/"));
        assert_eq!(plainer_path("/v3//kv/./range").as_deref(), Some("/v3/kv/range"));
        assert_eq!(plainer_path("/../a/b/../").as_deref(), Some("/a/"));
        assert_eq!(plainer_path("").as_deref(), Some("/"));
        for plain in ["/", "/v3/", "/v3/kv/range", "/v3/kv/range/", "/health"] {
            assert_eq!(plainer_path(plain), None);
        }
    }

    #[test]
    fn origins_on_the_list_are_echoed_and_others_get_nothing() {
        assert_eq!(policy(&["*"], &["*"]).cors_fields(None)[1].1, "*");
        let listed = policy(&["http://a.com:80"], &["*"]);
        assert_eq!(listed.cors_fields(Some("http://a.com:80"))[1].1, "http://a.com:80");
        assert_eq!(listed.cors_fields(Some("http://b.com:80")), []);
        assert_eq!(listed.cors_fields(None), []);
    }
}
