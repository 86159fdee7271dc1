//! What is said about settings that work but surprise: logged once, while the member boots.

use std::time::Duration;

use crate::entry;
use crate::log::{Entry, Level};
use crate::settings::Config;
use crate::size::humanise;

const REQUEST_BYTES_RECOMMENDED: u64 = 10 << 20;
const QUOTA_BYTES_RECOMMENDED: u64 = 8 << 30;

impl Config {
    /// etcd's remarks about quota, request size, password cost and watch progress.
    pub fn remarks(&self) -> Vec<Entry> {
        let mut lines = Vec::new();
        if self.max_request_bytes > REQUEST_BYTES_RECOMMENDED {
            lines.push(entry!(
                Level::Warn,
                "exceeded recommended request limit",
                "max-request-bytes" => self.max_request_bytes,
                "max-request-size" => humanise(self.max_request_bytes),
                "recommended-request-bytes" => REQUEST_BYTES_RECOMMENDED,
                "recommended-request-size" => humanise(REQUEST_BYTES_RECOMMENDED)
            ));
        }
        if self.bcrypt_cost_effective() != self.bcrypt_cost {
            lines.push(entry!(
                Level::Warn,
                "use default bcrypt cost instead of the invalid given cost",
                "min-cost" => 4u64,
                "max-cost" => 31u64,
                "default-cost" => 10u64,
                "given-cost" => self.bcrypt_cost
            ));
        }
        self.remark_on_quota(&mut lines);
        let least = Duration::from_millis(100);
        let given = self.watch_progress_notify_interval_given;
        if !given.is_zero() && given < least {
            lines.push(entry!(
                Level::Warn,
                "adjusting watch progress notify interval to minimum period",
                "min-watch-progress-notify-interval" => least
            ));
        }
        lines
    }

    fn remark_on_quota(&self, lines: &mut Vec<Entry>) {
        let name = "v3-applier";
        let Some(bytes) = self.quota_bytes() else {
            lines.push(entry!(
                Level::Info,
                "disabled backend quota",
                "quota-name" => name,
                "quota-size-bytes" => self.quota_backend_bytes
            ));
            return;
        };
        if bytes > QUOTA_BYTES_RECOMMENDED {
            lines.push(entry!(
                Level::Warn,
                "quota exceeds the maximum value",
                "quota-name" => name,
                "quota-size-bytes" => bytes,
                "quota-size" => humanise(bytes),
                "quota-maximum-size-bytes" => QUOTA_BYTES_RECOMMENDED,
                "quota-maximum-size" => humanise(QUOTA_BYTES_RECOMMENDED)
            ));
        }
        let msg = match self.quota_backend_bytes {
            0 => "enabled backend quota with default value",
            _ => "enabled backend quota",
        };
        lines.push(entry!(
            Level::Info,
            msg,
            "quota-name" => name,
            "quota-size-bytes" => bytes,
            "quota-size" => humanise(bytes)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(change: impl FnOnce(&mut Config)) -> Vec<String> {
        let mut config = Config::default();
        change(&mut config);
        config.remarks().into_iter().map(|line| line.msg.into_owned()).collect()
    }

    #[test]
    fn surprising_settings_are_remarked_upon() {
        assert_eq!(said(|_| ()), ["enabled backend quota with default value"]);
        assert_eq!(said(|c| c.quota_backend_bytes = -1), ["disabled backend quota"]);
        assert_eq!(said(|c| c.quota_backend_bytes = 1 << 30), ["enabled backend quota"]);
        assert_eq!(
            said(|c| c.quota_backend_bytes = 9 << 30),
            ["quota exceeds the maximum value", "enabled backend quota"]
        );
        let surprising = said(|c| {
            c.max_request_bytes = 11 << 20;
            c.bcrypt_cost = 3;
            c.watch_progress_notify_interval_given = Duration::from_millis(1);
        });
        assert_eq!(
            surprising,
            [
                "exceeded recommended request limit",
                "use default bcrypt cost instead of the invalid given cost",
                "enabled backend quota with default value",
                "adjusting watch progress notify interval to minimum period",
            ]
        );
    }
}
