//! The address of this machine as the rest of the world sees it, for advertising.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use crate::draft::Draft;
use crate::entry;
use crate::log::{Entry, Level};
use crate::settings::{Config, DEFAULT_CLIENT_URL, DEFAULT_NAME, DEFAULT_PEER_URL};
use crate::urls::Url;

/// Fills in what follows from other settings: the advertised address when the member listens
/// everywhere, and the founding list when only a name was given.
pub(crate) fn complete(draft: &mut Draft, lines: &mut Vec<Entry>) {
    let default_cluster = Config::default().initial_cluster;
    let config = &mut draft.config;
    let rewrites_peer = is_everywhere(&config.listen_peer_urls)
        && is_default(&config.initial_advertise_peer_urls, DEFAULT_PEER_URL);
    let rewrites_client = is_everywhere(&config.listen_client_urls)
        && is_default(&config.advertise_client_urls, DEFAULT_CLIENT_URL);
    if rewrites_peer || rewrites_client {
        match default_route_address() {
            Ok(host) => {
                let host = host.to_string();
                if rewrites_peer {
                    rewrite(
                        &mut config.initial_advertise_peer_urls,
                        &host,
                        &config.listen_peer_urls,
                    );
                }
                if rewrites_client {
                    rewrite(&mut config.advertise_client_urls, &host, &config.listen_client_urls);
                }
                let msg = "detected default host for advertise";
                lines.push(entry!(Level::Info, msg, "host" => host));
            }
            Err(error) => {
                let msg = "failed to detect default host";
                lines.push(entry!(Level::Info, msg, "error" => %error));
            }
        }
    }
    if config.name != DEFAULT_NAME && config.initial_cluster == default_cluster {
        let pairs = config.initial_advertise_peer_urls.iter();
        let pairs: Vec<_> = pairs.map(|url| format!("{}={url}", config.name)).collect();
        config.initial_cluster = pairs.join(",");
    }
}

fn is_everywhere(listen: &[Url]) -> bool {
    listen.first().is_some_and(|url| url.host() == "0.0.0.0")
}

fn is_default(advertised: &[Url], default: &str) -> bool {
    matches!(advertised, [one] if one.as_str() == default)
}

fn rewrite(advertised: &mut [Url], host: &str, listen: &[Url]) {
    let made = Url::from_host_port(advertised[0].scheme(), host, listen[0].port());
    advertised[0] = made.expect("an address and a checked port make a URL");
}

/// Connecting a datagram socket sends nothing; it only asks the kernel which way it would go.
fn default_route_address() -> std::io::Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
    Ok(socket.local_addr()?.ip())
}
