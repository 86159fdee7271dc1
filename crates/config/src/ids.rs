//! Member and cluster ids, computed from names on paper as etcd does it.
//!
//! Every founding member computes the same ids from the same `--initial-cluster` and token, without
//! having talked to the others: that is how they recognise each other on first contact.

use sha1::{Digest, Sha1};

use crate::urls::Url;

/// The id of a founding member: SHA-1 over its sorted peer URLs and the cluster token.
pub fn member_id(peer_urls: &[Url], token: &str) -> u64 {
    let mut texts: Vec<&str> = peer_urls.iter().map(Url::as_str).collect();
    texts.sort_unstable();
    let mut sum = Sha1::new();
    for text in texts {
        sum.update(text);
    }
    sum.update(token);
    first_eight(sum)
}

/// The id of a founding cluster: SHA-1 over the sorted ids of its members.
pub fn cluster_id(member_ids: &[u64]) -> u64 {
    let mut ids = member_ids.to_vec();
    ids.sort_unstable();
    let mut sum = Sha1::new();
    for id in ids {
        sum.update(id.to_be_bytes());
    }
    first_eight(sum)
}

fn first_eight(sum: Sha1) -> u64 {
    let digest = sum.finalize();
    let head: [u8; 8] = digest[..8].try_into().expect("a SHA-1 sum has twenty bytes");
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::urls::parse_list;

    #[test]
    fn a_default_member_has_the_ids_etcd_gives_it() {
        let urls = parse_list("http://localhost:2380").unwrap();
        let member = member_id(&urls, "etcd-cluster");
        assert_eq!(format!("{member:x}"), "8e9e05c52164694d");
        assert_eq!(format!("{:x}", cluster_id(&[member])), "cdf818194e3a8c32");
    }

    #[test]
    fn the_order_of_urls_and_members_does_not_matter() {
        let one = parse_list("http://b:1,http://a:1").unwrap();
        let mut other = one.clone();
        other.reverse();
        assert_eq!(member_id(&one, "t"), member_id(&other, "t"));
        assert_eq!(cluster_id(&[1, 2]), cluster_id(&[2, 1]));
        assert_ne!(member_id(&one, "t"), member_id(&one, "u"));
    }
}
