//! A member as it stands in the `members` table and in the context of a membership change: JSON
//! with etcd's names. Fields that etcd does not know are kept as they are.

use api::etcdserverpb;
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    #[serde(default)]
    pub id: u64,
    #[serde(rename = "peerURLs", default, deserialize_with = "null_is_empty")]
    pub peer_urls: Vec<String>,
    #[serde(rename = "isLearner", default, skip_serializing_if = "is_false")]
    pub is_learner: bool,
    /// Empty until the member has started.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(
        rename = "clientURLs",
        default,
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub client_urls: Vec<String>,
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Member {
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings, numbers and lists are always JSON")
    }

    /// As clients see it.
    pub fn to_wire(&self) -> etcdserverpb::Member {
        etcdserverpb::Member {
            id: self.id,
            name: self.name.clone(),
            peer_ur_ls: self.peer_urls.clone(),
            client_ur_ls: self.client_urls.clone(),
            is_learner: self.is_learner,
        }
    }
}

/// The context of a change that adds or promotes.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ChangeContext {
    #[serde(flatten)]
    pub member: Member,
    #[serde(rename = "isPromote", default)]
    pub is_promote: bool,
}

/// A row of the tables is named by the id in hex, without leading zeros.
pub(crate) fn row_name(id: u64) -> String {
    format!("{id:x}")
}

/// The peer URLs of a request as etcd keeps them: trimmed, with a lower-case scheme, and sorted.
/// Refuses what MemberAdd refuses: an empty list, a scheme other than http, https, unix or unixs, a
/// missing or odd port, a path.
pub fn parse_peer_urls(urls: &[String]) -> Result<Vec<String>, api::Error> {
    if urls.is_empty() {
        return Err(api::Error::BAD_MEMBER_URLS);
    }
    let parsed = urls.iter().map(|url| parse_peer_url(url.trim()));
    let mut parsed: Vec<String> =
        parsed.collect::<Option<_>>().ok_or(api::Error::BAD_MEMBER_URLS)?;
    parsed.sort();
    Ok(parsed)
}

fn parse_peer_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        "unix" | "unixs" => {}
        "http" | "https" => {
            let (host, query) = match rest.find('?') {
                Some(at) => rest.split_at(at),
                None => (rest, ""),
            };
            if host.contains('/') || host.contains(' ') || query.contains(' ') {
                return None;
            }
            let (host, port) = host.rsplit_once(':')?;
            let bracketed = host.starts_with('[') && host.ends_with(']');
            let plain = !host.contains([':', '[', ']', '@']);
            if !(bracketed || plain) || !port.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
        }
        _ => return None,
    }
    Some(format!("{scheme}://{rest}"))
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn null_is_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_written_as_etcd_writes_it() {
        let json = r#"{"id":18249187646912138824,"peerURLs":["http://a:1"],"isLearner":true}"#;
        let mut member: Member = serde_json::from_str(json).expect("a member");
        assert_eq!(member.to_json(), json.as_bytes());
        member.is_learner = false;
        member.name = "a".into();
        member.client_urls = vec!["http://a:2".into()];
        let json = r#"{"id":18249187646912138824,"peerURLs":["http://a:1"],"name":"a","clientURLs":["http://a:2"]}"#;
        assert_eq!(member.to_json(), json.as_bytes());
    }

    #[test]
    fn unknown_fields_survive() {
        let json = r#"{"id":7,"peerURLs":["http://a:1"],"policy":{"kind":"standby"}}"#;
        let member: Member = serde_json::from_str(json).expect("a member");
        assert_eq!(member.to_json(), json.as_bytes());
    }

    #[test]
    fn a_promotion_has_no_urls() {
        let json = br#"{"id":7,"peerURLs":null,"isPromote":true}"#;
        let context: ChangeContext = serde_json::from_slice(json).expect("a context");
        assert!(context.is_promote);
        assert_eq!((context.member.id, context.member.peer_urls.len()), (7, 0));
        assert!(context.member.extra.is_empty());
    }

    #[test]
    fn peer_urls_need_a_port_and_no_path() {
        let parse = |urls: &[&str]| {
            parse_peer_urls(&urls.iter().map(|url| url.to_string()).collect::<Vec<_>>()).ok()
        };
        assert_eq!(
            parse(&[" http://b:2380 ", "HTTP://a:2380"]),
            Some(vec!["http://a:2380".into(), "http://b:2380".into()])
        );
        assert!(parse(&["http://:2380"]).is_some());
        assert!(parse(&["https://[::1]:2380"]).is_some());
        assert!(parse(&["unix://a/b"]).is_some());
        for bad in
            ["", "a:2380", "http://a", "http://a:2380/", "http://a:x", "ftp://a:1", "http://::1:1"]
        {
            assert_eq!(parse(&[bad]), None, "{bad}");
        }
        assert_eq!(parse(&[]), None);
    }
}
