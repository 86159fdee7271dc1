//! How the process ends: by a signal, after everything was closed, and as if by that signal.
//!
//! SIGINT and SIGTERM are blocked before any thread is started, and one thread waits for them. So
//! no code runs in a signal handler, and a second signal during the shutdown changes nothing. When
//! all is closed the signal is raised again with its default effect, and whoever started us sees
//! what really happened (143 for SIGTERM). As process 1 a signal without a handler has no effect,
//! so there the process just exits.

use std::io;

/// The two signals that ask for an orderly end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Interrupt,
    Terminate,
}

/// The right to wait for [`Signal`]s: they are blocked as long as nobody does.
#[derive(Debug)]
pub struct Signals(());

impl Signals {
    /// Call this first in `main`: threads started later inherit what is blocked here.
    ///
    /// Also ignores SIGUSR1, SIGUSR2 and SIGPIPE, which must not end a server.
    pub fn block() -> io::Result<Self> {
        // SAFETY: the set is a live local; the handlers are the kernel's own.
        unsafe {
            for ignored in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGPIPE] {
                if libc::signal(ignored, libc::SIG_IGN) == libc::SIG_ERR {
                    return Err(io::Error::last_os_error());
                }
            }
            let set = awaited();
            match libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) {
                0 => Ok(Self(())),
                code => Err(io::Error::from_raw_os_error(code)),
            }
        }
    }

    /// Waits for the next signal.
    pub fn wait(&self) -> Signal {
        let set = awaited();
        loop {
            let mut number = 0;
            // SAFETY: both pointers are to live locals.
            let code = unsafe { libc::sigwait(&set, &mut number) };
            match (code, number) {
                (0, libc::SIGINT) => return Signal::Interrupt,
                (0, libc::SIGTERM) => return Signal::Terminate,
                // Only an interruption by a debugger or the like comes here.
                _ => continue,
            }
        }
    }
}

impl Signal {
    /// Go's word for it, as in the line `received signal; shutting down`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Terminate => "terminated",
        }
    }

    fn number(self) -> libc::c_int {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
        }
    }
}

/// Ends the process as the signal would have; call it when everything is closed.
pub fn end_by(signal: Signal) -> ! {
    if std::process::id() == 1 {
        std::process::exit(0);
    }
    let number = signal.number();
    // SAFETY: the set is a live local; raising a signal with its default effect ends the process.
    unsafe {
        libc::signal(number, libc::SIG_DFL);
        let set = awaited();
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(number);
    }
    // Not reached unless somebody traces us and swallows the signal.
    std::process::exit(128 + number)
}

/// Tells the waiting thread to end the process in an orderly way, from within it.
pub fn ask(signal: Signal) {
    // SAFETY: sending a signal to oneself touches no memory.
    unsafe {
        libc::kill(libc::getpid(), signal.number());
    }
}

fn awaited() -> libc::sigset_t {
    // SAFETY: a zeroed set is a valid argument of sigemptyset, which then fills it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::sigaddset(&mut set, libc::SIGTERM);
        set
    }
}
