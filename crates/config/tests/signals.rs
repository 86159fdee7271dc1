//! A process that is asked to end does so in order, and its parent sees by which signal.
//!
//! Signals belong to a whole process, so this test starts itself again as the one to be ended. It
//! has no test harness, because that would have started threads before signals are blocked.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use config::exit::{Signals, end_by};

fn main() {
    if std::env::var_os("SIGNALS_CHILD").is_some() {
        child();
    }
    for (signal, word) in [(libc::SIGTERM, "terminated"), (libc::SIGINT, "interrupt")] {
        let mut child = Command::new(std::env::current_exe().expect("a test knows its own path"))
            .env("SIGNALS_CHILD", "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("a test can start itself");
        let pid = libc::pid_t::try_from(child.id()).expect("a pid is small");
        let mut heard = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let mut next = || heard.next().expect("the child speaks on").expect("the pipe holds");
        assert_eq!(next(), "waiting");
        // None of these may end it. All are sent before the one that does.
        for harmless in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGPIPE, signal] {
            // SAFETY: the child is ours and alive: it has not been waited for.
            assert_eq!(unsafe { libc::kill(pid, harmless) }, 0);
        }
        assert_eq!(next(), word);
        let status = child.wait().expect("the child ends");
        assert_eq!(status.signal(), Some(signal));
    }
    println!("signals: ok");
}

fn child() -> ! {
    let signals = Signals::block().expect("signals can be blocked");
    // Started after blocking, as the threads of a server are.
    let beside = std::thread::spawn(|| ());
    println!("waiting");
    let signal = signals.wait();
    println!("{}", signal.as_str());
    beside.join().expect("it does nothing");
    end_by(signal)
}
