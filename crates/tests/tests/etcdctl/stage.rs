//! Where scenes are played: a server, etcdctl, and the transcript of what was seen.

use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{scope, spawn};
use std::time::Duration;
use testkit::Server;

/// Nothing that a scene waits for takes this long unless it never comes.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Plays a scene on both servers at the same time and compares what was seen.
pub fn same_on_both(flags: &[&str], scene: impl Fn(&mut Stage) + Sync) {
    let Some(etcd) = testkit::etcd_or_skip("etcd") else { return };
    let Some(etcdctl) = testkit::etcd_or_skip("etcdctl") else { return };
    let althing = testkit::althing();
    let play = |binary: &PathBuf| {
        let mut stage = Stage::new(etcdctl.clone(), Server::start(binary, flags));
        scene(&mut stage);
        stage.transcript
    };
    let (ours, theirs) = scope(|threads| {
        let theirs = threads.spawn(|| play(&etcd));
        let ours = play(&althing);
        (ours, theirs.join().expect("the scene can be played on the real etcd"))
    });
    compare(&ours, &theirs);
}

fn compare(ours: &str, theirs: &str) {
    if std::env::var_os("SHOW_TRANSCRIPT").is_some() {
        eprintln!("{ours}");
    }
    let same = ours.lines().zip(theirs.lines()).take_while(|(a, b)| a == b).count();
    if ours == theirs {
        return;
    }
    let seen = |text: &str| -> String {
        text.lines().skip(same).take(8).map(|line| format!("  {line}\n")).collect()
    };
    let before: Vec<&str> = ours.lines().take(same).collect();
    let before = before[before.len().saturating_sub(12)..].join("\n  ");
    panic!("after\n  {before}\nalthing shows\n{}where etcd shows\n{}", seen(ours), seen(theirs));
}

pub struct Stage {
    pub server: Server,
    etcdctl: PathBuf,
    transcript: String,
    /// What differs by nature, and the name that stands for it.
    names: Vec<(String, String)>,
}

impl Stage {
    fn new(etcdctl: PathBuf, server: Server) -> Stage {
        let mut stage = Stage { server, etcdctl, transcript: String::new(), names: Vec::new() };
        let list = stage.output("member list -w json", "");
        let list: Value = serde_json::from_slice(&list.stdout).expect("member list is JSON");
        let id = |value: &Value| value.as_u64().expect("ids are numbers");
        stage.name_id(id(&list["header"]["cluster_id"]), "CLUSTER");
        stage.name_id(id(&list["header"]["member_id"]), "MEMBER");
        let (client, peer) = (stage.server.client_port, stage.server.peer_port);
        stage.name(&format!("127.0.0.1:{client}"), "CLIENT");
        stage.name(&format!("127.0.0.1:{peer}"), "PEER");
        stage
    }

    /// Lets `name` stand for `seen` in the transcript from now on.
    pub fn name(&mut self, seen: &str, name: &str) {
        self.names.push((seen.to_string(), name.to_string()));
    }

    /// The same for an id in all the ways in which it is printed.
    pub fn name_id(&mut self, id: u64, name: &str) {
        let hex = format!("{name}-x");
        self.name(&format!("{id:016x}"), &hex);
        self.name(&format!("{id:16x}"), &hex);
        self.name(&format!("{id:x}"), &hex);
        self.name(&id.to_string(), name);
    }

    /// Runs etcdctl with the words of `line` ('quotes' hold one together) and writes down what
    /// it did. Returns its standard output.
    pub fn run(&mut self, line: &str) -> String {
        self.run_with(line, "")
    }

    /// The same with something on standard input.
    pub fn run_with(&mut self, line: &str, input: &str) -> String {
        self.run_changed(line, input, |shown| shown)
    }

    /// The same; `change` masks what no two runs have in common, such as durations.
    pub fn run_changed(
        &mut self,
        line: &str,
        input: &str,
        change: impl Fn(String) -> String,
    ) -> String {
        let output = self.output(line, input);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        self.write(&format!("$ etcdctl {line}"));
        self.write(&change(stdout.clone()));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let stderr: Vec<String> = stderr.lines().map(short_log_line).collect();
        if !stderr.is_empty() {
            self.write(&change(format!("stderr: {}", stderr.join("\nstderr: "))));
        }
        match output.status.code() {
            Some(0) => {}
            Some(code) => self.write(&format!("exit code {code}")),
            None => self.write(&format!("{}", output.status)),
        }
        stdout
    }

    /// Runs etcdctl unseen.
    pub fn output(&self, line: &str, input: &str) -> Output {
        let mut child = self.command(line).spawn().expect("etcdctl can be started");
        let mut stdin = child.stdin.take().expect("its input is a pipe");
        // It need not read what it does not want.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("etcdctl ends")
    }

    /// Starts a command that goes on until it is stopped, such as `watch`.
    pub fn start(&mut self, line: &str, input: &str) -> Running {
        self.write(&format!("$ etcdctl {line} &"));
        let mut child = self.command(line).spawn().expect("etcdctl can be started");
        let mut stdin = child.stdin.take().expect("its input is a pipe");
        stdin.write_all(input.as_bytes()).expect("it reads its input");
        let (sender, lines) = channel();
        let stdout = child.stdout.take().expect("its output is a pipe");
        spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Running { child, stdin: Some(stdin), lines }
    }

    /// Writes down the next `count` lines of a running command.
    pub fn see(&mut self, running: &Running, count: usize) {
        for _ in 0..count {
            let line = running.next_line();
            self.write(&format!("| {line}"));
        }
    }

    /// Writes down how a running command ends, and what it still says.
    pub fn see_end(&mut self, mut running: Running) {
        drop(running.stdin.take());
        let mut stderr = String::new();
        let mut pipe = running.child.stderr.take().expect("its errors are a pipe");
        pipe.read_to_string(&mut stderr).expect("it writes text");
        let status = running.child.wait().expect("our child can be waited for");
        while let Ok(line) = running.lines.recv_timeout(WAIT_MAX) {
            self.write(&format!("| {line}"));
        }
        stderr.lines().for_each(|line| self.write(&format!("stderr: {}", short_log_line(line))));
        self.write(&format!("ended: {status}"));
    }

    /// One line or more of transcript, with names for what differs by nature.
    pub fn write(&mut self, text: &str) {
        let mut text = text.to_string();
        for (seen, name) in &self.names {
            text = text.replace(seen.as_str(), name);
        }
        if !text.is_empty() {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            write!(self.transcript, "{text}{end}").expect("a string takes all");
        }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.etcdctl);
        command.arg("--endpoints").arg(self.server.endpoint()).args(words(line));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// A command that goes on.
pub struct Running {
    child: Child,
    stdin: Option<std::process::ChildStdin>,
    lines: Receiver<String>,
}

impl Running {
    /// Another line for its input.
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the input is open until the end");
        writeln!(stdin, "{line}").expect("it reads its input");
    }

    /// The next line that it prints.
    pub fn next_line(&self) -> String {
        self.lines.recv_timeout(WAIT_MAX).expect("etcdctl prints another line")
    }

    /// What Ctrl-C does.
    pub fn interrupt(&self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().expect("kill can be run");
        assert!(sent.success(), "a running command can be interrupted");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Splits at blanks; 'single quotes' hold a word together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('\'').enumerate() {
        match i % 2 {
            0 => words.extend(part.split_whitespace().map(String::from)),
            _ => words.push(part.to_string()),
        }
    }
    words
}

/// etcdctl logs what it did with times and pointers in it; what happened is in these fields.
fn short_log_line(line: &str) -> String {
    let Ok(Value::Object(log)) = serde_json::from_str(line) else { return line.to_string() };
    let fields = ["level", "msg", "method", "attempt", "error", "etcd-version", "size"];
    let shown = fields.iter().filter_map(|f| log.get(*f).map(|v| format!("{f}={v}")));
    shown.collect::<Vec<_>>().join(" ")
}
