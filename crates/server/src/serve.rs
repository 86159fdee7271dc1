//! Starting a member and stopping it: the story that the log tells.

use crate::desk::Serves;
use crate::listen;
use crate::member::{Member, Moment};
use crate::open;
use crate::threads::stop_on_panic;
use config::Config;
use config::data_dir::DirType;
use config::exit::{Signal, Signals};
use config::limits::{lock_memory, open_files_max};
use config::log::{Entry, Logger};
use std::fmt::Display;
use std::sync::mpsc;
use std::thread;

/// Runs a member until it is told to stop by a signal. The error is the exit code; why was logged.
pub fn run(config: Config, logger: Logger, signals: Signals) -> Result<Signal, i32> {
    let refuse = |error: &dyn Display| {
        config::info!(logger, "closing etcd server", "name" => config.name.as_str());
        config::info!(logger, "closed etcd server", "name" => config.name.as_str());
        config::fatal!(logger, "discovery failed", "error" => error.to_string());
        1
    };
    stop_on_panic(&logger);
    let stop = |line: &Entry, code| {
        logger.write(line);
        code
    };
    if config.memory_mlock {
        lock_memory().map_err(|error| refuse(&format!("cannot lock memory: {error}")))?;
    }
    let mut lines = Vec::new();
    let identified = config::data_dir::identify(&config.data_dir, &mut lines);
    lines.iter().for_each(|line| logger.write(line));
    let dir_type = identified.map_err(|unusable| stop(&unusable.line, unusable.code))?;
    config::info!(logger, match dir_type {
            DirType::Empty => "Initialize and start etcd server",
            DirType::Member => "server has already been initialized",
        },
        "data-dir" => config.data_dir.display().to_string(), "dir-type" => dir_type.as_str());
    config.check_listeners().map_err(|error| refuse(&error))?;
    let connections_max = open_files_max()
        .map_err(|error| refuse(&error))
        .and_then(|files| config::limits::connections_max(files).map_err(|line| stop(&line, 1)))?;
    config::info!(logger, "configuring peer listeners",
        "listen-peer-urls" => config::urls::texts(&config.listen_peer_urls));
    config::info!(logger, "configuring client listeners",
        "listen-client-urls" => config::urls::texts(&config.listen_client_urls));
    let bound = listen::bind_all(&config).map_err(|error| refuse(&error))?;
    let mut line = config::entry!(config::log::Level::Info, "starting an etcd server");
    line.fields = config::start_line(&config, config.is_initialized());
    logger.write(&line);
    config.check_services().map_err(|error| refuse(&error))?;
    let opened = open::open(&config, &logger).map_err(|error| {
        config::error!(logger, "bootstrap failed", "error" => error.to_string());
        refuse(&error)
    })?;
    let (moments, next_moment) = mpsc::channel();
    let member = Member::start(config.clone(), logger.clone(), opened, moments.clone())
        .map_err(|error| refuse(&error))?;
    // A signal must be heard while the start is still going on: on a full disk it may take for ever.
    thread::spawn(move || moments.send(Moment::Signal(signals.wait())));
    let wait = || next_moment.recv().expect("whoever waits for signals keeps its end");
    if let Moment::Signal(signal) = wait() {
        config::info!(logger, "received signal; shutting down", "signal" => signal.as_str());
        member.stop();
        return Ok(signal);
    }
    config::info!(logger, "ready to serve client requests");
    let addresses: Vec<(Serves, String)> =
        bound.iter().map(|bound| (bound.serves, bound.address.clone())).collect();
    let serving = member
        .serve(bound, usize::try_from(connections_max).unwrap_or(usize::MAX))
        .map_err(|error| refuse(&error))?;
    notify_init_daemon(&logger);
    announce(&logger, &addresses);
    let signal = loop {
        // It is published again whenever leadership comes back.
        if let Moment::Signal(signal) = wait() {
            break signal;
        }
    };
    config::info!(logger, "received signal; shutting down", "signal" => signal.as_str());
    let ids = |urls: &[config::Url]| config::urls::texts(urls);
    config::info!(logger, "closing etcd server",
        "name" => config.name.as_str(),
        "data-dir" => config.data_dir.display().to_string(),
        "advertise-peer-urls" => ids(&config.initial_advertise_peer_urls),
        "advertise-client-urls" => ids(&config.advertise_client_urls));
    config::info!(logger, "skipped leadership transfer for single voting member cluster");
    serving.stop();
    config::info!(logger, "closed etcd server",
        "name" => config.name.as_str(),
        "data-dir" => config.data_dir.display().to_string(),
        "advertise-peer-urls" => ids(&config.initial_advertise_peer_urls),
        "advertise-client-urls" => ids(&config.advertise_client_urls));
    Ok(signal)
}

fn notify_init_daemon(logger: &Logger) {
    config::info!(logger, "notifying init daemon");
    match config::notify::ready() {
        Ok(_) => config::info!(logger, "successfully notified init daemon"),
        Err(error) => {
            config::error!(logger, "failed to notify systemd for readiness", "error" => error.to_string());
        }
    }
}

fn announce(logger: &Logger, addresses: &[(Serves, String)]) {
    config::info!(logger, "grpc service status changed", "service" => "", "status" => "SERVING");
    for (serves, address) in addresses {
        let traffic = match serves {
            Serves::Peers => {
                config::info!(logger, "serving peer traffic", "address" => address.as_str());
                continue;
            }
            Serves::Metrics => {
                config::info!(logger, "serving metrics", "address" => address.as_str());
                continue;
            }
            Serves::Everything => "grpc+http",
            Serves::Grpc => "grpc",
            Serves::Http => "http",
        };
        config::info!(logger, "serving client traffic insecurely; this is strongly discouraged!",
            "traffic" => traffic, "address" => address.as_str());
    }
}
