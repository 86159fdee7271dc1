//! What `--help` and `--version` print.

use std::fmt::Write;

use crate::aliases;
use crate::flags::{FLAGS, Group};
use crate::gates::Gate;
use crate::version::{ALTHING_VERSION, ETCD_VERSION, GIT_SHA, go_arch, go_os, go_version};

/// The short form, which also follows every complaint about a flag.
pub(crate) fn usage() -> String {
    "\
Usage:

  etcd [flags]
    Start a member.

  etcd --version
    Show the version.

  etcd -h | --help
    Show all flags.

  etcd --config-file
    Read all settings from a file; other flags and environment variables are then ignored.

  althing bench
    Measure a server, or compare this one with etcd.

Every flag can also be set by an environment variable: --data-dir is ETCD_DATA_DIR.
"
    .into()
}

/// Every flag with its default, by group.
pub(crate) fn full() -> String {
    let mut out = String::new();
    for (group, title) in GROUPS {
        let _ = writeln!(out, "\n{title}:");
        for flag in FLAGS.iter().filter(|flag| flag.group == *group) {
            let _ = writeln!(out, "  --{} '{}'\n    {}", flag.name, flag.default, flag.help);
            if flag.name == "feature-gates" {
                for gate in Gate::ALL {
                    let _ = writeln!(out, "    {}", gate.describe());
                }
            }
        }
    }
    out.push_str("\nDeprecated names, gone in v3.7:\n");
    for name in aliases::names() {
        let _ = writeln!(out, "  --{name}\n    Use {} instead.", aliases::successor(name));
    }
    out.push_str(
        "\nNot supported by this version, and refused when set: TLS, discovery, JWT, tracing,\n\
         profiles, --force-new-cluster, and clusters of more than one member.\n",
    );
    out
}

const GROUPS: &[(Group, &str)] = &[
    (Group::Member, "Member"),
    (Group::Clustering, "Clustering"),
    (Group::Security, "Security"),
    (Group::Auth, "Auth"),
    (Group::Monitoring, "Profiling and Monitoring"),
    (Group::Logging, "Logging"),
    (Group::Tracing, "Distributed tracing"),
    (Group::Checks, "Compaction and checks"),
    (Group::Unsafe, "Unsafe (these can break what the cluster promises)"),
];

/// Four lines that scripts know, and one that says who we really are.
pub(crate) fn version() -> String {
    format!(
        "etcd Version: {ETCD_VERSION}\nGit SHA: {GIT_SHA}\nGo Version: {}\nGo OS/Arch: {}/{}\n\
         Althing Version: {ALTHING_VERSION}\n",
        go_version(),
        go_os(),
        go_arch()
    )
}
