//! Downgrades: what a cluster of one says about going back a version.

use super::Office;
use super::recipe::decode;
use api::Error;
use api::etcdserverpb::{DowngradeRequest, DowngradeResponse, downgrade_request::DowngradeAction};
use api::membershippb::DowngradeInfoSetRequest;
use bytes::Bytes;
use prost::Message;

const DOWNGRADE_FIELD: u32 = 1302;

impl Office {
    pub(super) async fn downgrade(&self, data: Bytes) -> Result<Bytes, Error> {
        let request: DowngradeRequest = decode(data)?;
        match DowngradeAction::try_from(request.action) {
            Ok(DowngradeAction::Validate) => {
                self.check_downgrade(&request.version).await?;
            }
            Ok(DowngradeAction::Enable) => {
                let target = self.check_downgrade(&request.version).await?;
                self.set_downgrade(true, target).await?;
            }
            Ok(DowngradeAction::Cancel) => {
                self.barrier().await?;
                if self.config().view.downgrade().enabled {
                    self.set_downgrade(false, String::new()).await?;
                } else {
                    config::warn!(
                        self.config().logger,
                        "no downgrade is under way, so there is nothing to cancel"
                    );
                }
            }
            Err(_) => return Err(Error::UNKNOWN_METHOD),
        }
        let cluster = self.config().view.cluster_version();
        let version = cluster.as_deref().map_or_else(String::new, major_minor);
        let body = DowngradeResponse { header: None, version }.encode_to_vec();
        Ok(self.with_header(self.config().view.revision(), &body))
    }

    /// The only version to go back to is the one before.
    async fn check_downgrade(&self, version: &str) -> Result<String, Error> {
        let (major, minor) = parse(version).ok_or(Error::WRONG_DOWNGRADE_VERSION)?;
        let cluster = self.config().view.cluster_version();
        let cluster = cluster.ok_or(Error::CLUSTER_VERSION_UNAVAILABLE)?;
        self.barrier().await?;
        let current = parse(&cluster).ok_or(Error::CLUSTER_VERSION_UNAVAILABLE)?;
        if (major, minor + 1) != current {
            return Err(Error::INVALID_DOWNGRADE_TARGET);
        }
        if self.config().view.downgrade().enabled {
            return Err(Error::DOWNGRADE_IN_PROGRESS);
        }
        Ok(format!("{major}.{minor}.0"))
    }

    async fn set_downgrade(&self, enabled: bool, ver: String) -> Result<(), Error> {
        let request = DowngradeInfoSetRequest { enabled, ver };
        self.propose(DOWNGRADE_FIELD, &request.encode_to_vec()).await.map(drop)
    }
}

/// Major and minor of `X.Y` or `X.Y.Z`, the latter with anything semver allows behind it.
fn parse(version: &str) -> Option<(u64, u64)> {
    let core = version.split(['-', '+']).next()?;
    let parts: Vec<&str> = core.split('.').collect();
    let plain = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        (digits && (part == "0" || !part.starts_with('0'))).then(|| part.parse().ok())?
    };
    match parts[..] {
        [major, minor] if core == version => Some((plain(major)?, plain(minor)?)),
        [major, minor, patch] => plain(patch).and(Some((plain(major)?, plain(minor)?))),
        _ => None,
    }
}

fn major_minor(version: &str) -> String {
    version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_two_or_three_parts() {
        assert_eq!(parse("3.5"), Some((3, 5)));
        assert_eq!(parse("3.5.0"), Some((3, 5)));
        assert_eq!(parse("3.5.7-rc.1"), Some((3, 5)));
        for bad in ["", "3", "3.", "3.x", "v3.5", "3.5.0.1", "03.5", "-1.2"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
