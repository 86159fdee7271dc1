//! The founding list: who is in the cluster, which of them is this member, and their ids.
//!
//! Looked at only by a member without data. The errors are etcd's; they end the process after its
//! listeners were opened, as `discovery failed`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::ToSocketAddrs;

use crate::ids::{cluster_id, member_id};
use crate::quote::{quote, quote_list};
use crate::settings::Config;
use crate::urls::{Url, parse_list, texts};

/// Who founds the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitialCluster {
    /// The peer URLs of every member by name.
    pub members: BTreeMap<String, Vec<Url>>,
    /// The id of every member by name.
    pub member_ids: BTreeMap<String, u64>,
    pub local_member_id: u64,
    pub cluster_id: u64,
}

impl Config {
    /// What must hold before the listeners are opened; the error ends the process.
    pub fn check_listeners(&self) -> Result<(), String> {
        for url in self.listen_client_urls.iter().chain(&self.listen_client_http_urls) {
            if url.is_tls() {
                return Err(format!(
                    "TLS key/cert (--cert-file, --key-file) must be provided for client url {url} \
                     with HTTPS scheme"
                ));
            }
        }
        for url in self.listen_client_urls.iter().filter(|url| !url.is_socket()) {
            let is_same = |http: &&Url| http.address() == url.address();
            if let Some(http) = self.listen_client_http_urls.iter().find(is_same) {
                return Err(format!(
                    "cannot bind both --listen-client-urls and --listen-client-http-urls on the \
                     same url {http}"
                ));
            }
        }
        if let Some(url) = self.listen_peer_urls.iter().find(|url| url.is_tls()) {
            return Err(format!(
                "cannot listen on TLS for {}: KeyFile and CertFile are not presented",
                url.address()
            ));
        }
        Ok(())
    }

    /// What is looked at once the member stands, after the line `starting an etcd server`.
    pub fn check_services(&self) -> Result<(), String> {
        let kind = self.auth_token.split(',').next().unwrap_or_default();
        if !matches!(kind, "simple" | "jwt") {
            return Err("auth: invalid auth options".into());
        }
        if self.listen_metrics_urls.iter().any(Url::is_tls) {
            return Err("client TLS key/cert (--cert-file, --key-file) must be provided for \
                        metrics secure url"
                .into());
        }
        Ok(())
    }

    /// The founding list, checked against this member's own name and URLs.
    pub fn initial_cluster(&self) -> Result<InitialCluster, String> {
        let members = parse_members(&self.initial_cluster)
            .map_err(|why| format!("error setting up initial cluster: {why}"))?;
        let Some(listed) = members.get(&self.name) else {
            return Err(format!(
                "couldn't find local name {} in the initial cluster configuration",
                quote(&self.name)
            ));
        };
        check_advertised(&self.name, &self.initial_advertise_peer_urls, listed)?;
        let token = &self.initial_cluster_token;
        let member_ids: BTreeMap<String, u64> =
            members.iter().map(|(name, urls)| (name.clone(), member_id(urls, token))).collect();
        let ids: Vec<u64> = member_ids.values().copied().collect();
        let local_member_id = member_ids[&self.name];
        let founded =
            InitialCluster { members, member_ids, local_member_id, cluster_id: cluster_id(&ids) };
        let mut urls: Vec<&Url> = founded.members.values().flatten().collect();
        urls.sort();
        if urls.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!("initial cluster {founded} has duplicate url"));
        }
        Ok(founded)
    }
}

impl fmt::Display for InitialCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&pairs(&self.members))
    }
}

/// `name=url` for every URL, sorted.
pub(crate) fn pairs(members: &BTreeMap<String, Vec<Url>>) -> String {
    let mut pairs: Vec<String> = members
        .iter()
        .flat_map(|(name, urls)| urls.iter().map(move |url| format!("{name}={url}")))
        .collect();
    pairs.sort();
    pairs.join(",")
}

/// A name may stand several times, once for each of its URLs.
pub(crate) fn parse_members(list: &str) -> Result<BTreeMap<String, Vec<Url>>, String> {
    let mut members: BTreeMap<String, Vec<Url>> = BTreeMap::new();
    for pair in list.split(',').filter(|pair| !pair.is_empty()) {
        let (name, url) = pair.split_once('=').unwrap_or((pair, ""));
        let urls = members.entry(name.into()).or_default();
        urls.extend(parse_list(url)?);
        urls.sort();
    }
    Ok(members)
}

/// The URLs this member advertises must be those it is listed with, by text or by address.
fn check_advertised(name: &str, advertised: &[Url], listed: &[Url]) -> Result<(), String> {
    let Err(why) = compare(advertised, listed) else { return Ok(()) };
    let missing: Vec<String> = listed
        .iter()
        .filter(|url| !advertised.contains(url))
        .map(|url| format!("{name}={url}"))
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "--initial-cluster has {} but missing from --initial-advertise-peer-urls={} ({why})",
            missing.join(","),
            texts(advertised).join(",")
        ));
    }
    // From here on etcd shows what is advertised, in the form of the list.
    let own = pairs(&BTreeMap::from([(name.to_string(), advertised.to_vec())]));
    let extra: Vec<String> =
        advertised.iter().filter(|url| !listed.contains(url)).map(Url::to_string).collect();
    if !extra.is_empty() {
        return Err(format!(
            "--initial-advertise-peer-urls has {} but missing from --initial-cluster={own}",
            extra.join(",")
        ));
    }
    Err(format!(
        "failed to resolve {} to match --initial-cluster={own} ({why})",
        texts(advertised).join(",")
    ))
}

fn compare(advertised: &[Url], listed: &[Url]) -> Result<(), String> {
    let (mut own, mut named) = (texts(advertised), texts(listed));
    if own.len() != named.len() {
        return Err(format!("len({}) != len({})", quote_list(&own), quote_list(&named)));
    }
    own.sort();
    named.sort();
    if own == named {
        return Ok(());
    }
    let mut own = advertised.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
    let mut named = listed.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
    own.sort();
    named.sort();
    match own.iter().zip(&named).find(|(one, other)| one != other) {
        Some((one, other)) => Err(format!("resolved urls: {} != {}", quote(one), quote(other))),
        None => Ok(()),
    }
}

/// The URL with its host as an address.
fn resolve(url: &Url) -> Result<String, String> {
    let host = url.host();
    let is_settled =
        url.is_socket() || host == "localhost" || host.parse::<std::net::IpAddr>().is_ok();
    if is_settled {
        return Ok(url.to_string());
    }
    let port: u16 = url.port().parse().unwrap_or(0);
    let found = (host, port).to_socket_addrs().map_err(|error| error.to_string())?.next();
    match found {
        Some(address) => Ok(format!("{}://{address}", url.scheme().as_str())),
        None => Err(format!("no address for {host}")),
    }
}
