//! A PostgreSQL server of a test's own, from the system's packages: a fresh cluster in a temporary folder.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The parts of a PostgreSQL server that a machine has.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    /// The folder with `initdb` and `postgres`.
    pub(super) bin: Option<PathBuf>,
    /// PostgreSQL refuses to run as root.
    pub(super) is_root: bool,
    /// `setpriv`, to become somebody else.
    pub(super) setpriv: bool,
    /// A user without privileges, by number.
    pub(super) nobody: Option<(u32, u32)>,
}

/// The way to start a server on this machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) bin: PathBuf,
    pub(super) become_user: Option<(u32, u32)>,
}

/// The way to start a server, or the reason to skip the tests.
pub(super) fn plan(machine: &Machine) -> Result<Plan, String> {
    let Some(bin) = machine.bin.clone() else {
        return Err("PostgreSQL is not installed (apt-get install postgresql)".to_owned());
    };
    let become_user = match (machine.is_root, machine.setpriv, machine.nobody) {
        (false, ..) => None,
        (true, true, Some(user)) => Some(user),
        (true, false, _) => {
            return Err("we are root, and there is no setpriv to become another".to_owned());
        }
        (true, true, None) => {
            return Err("we are root, and there is no user postgres or nobody".to_owned());
        }
    };
    Ok(Plan { bin, become_user })
}

impl Machine {
    /// This one.
    pub(super) fn here() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let mut versions: Vec<PathBuf> = debian.flatten().map(|e| e.path().join("bin")).collect();
        versions.sort();
        let setpriv = folders
            .iter()
            .any(|folder| folder.join("setpriv").is_file());
        folders.extend(versions.into_iter().rev());
        let bin = folders.into_iter().find_map(|folder| {
            // A link into the version's own folder is followed: the server looks for its files next to itself.
            let server = folder.join("postgres").canonicalize().ok()?;
            let bin = server.parent()?.to_owned();
            bin.join("initdb").is_file().then_some(bin)
        });
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let user = |name: &str| {
            let line = users
                .lines()
                .find(|line| line.split(':').next() == Some(name))?;
            let mut parts = line.split(':').skip(2);
            Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
        };
        let is_root = fs::metadata("/proc/self").is_ok_and(|me| {
            use std::os::unix::fs::MetadataExt as _;
            me.uid() == 0
        });
        Self {
            bin,
            is_root,
            setpriv,
            nobody: user("postgres").or_else(|| user("nobody")),
        }
    }
}

/// A server that runs as long as this value.
pub(super) struct Server {
    child: Child,
    /// The folder of its socket and its files.
    pub(super) folder: tempfile::TempDir,
    pub(super) port: u16,
}

impl Server {
    /// A server for this test, or the reason that it is skipped for, printed.
    pub(super) fn start() -> Option<Self> {
        match plan(&Machine::here()) {
            Ok(plan) => Some(Self::of(&plan)),
            Err(why) => {
                // Not by `eprintln!`, which test runners keep to themselves where a test passes.
                let _gone = writeln!(std::io::stderr().lock(), "skipped: {why}");
                None
            }
        }
    }

    fn of(plan: &Plan) -> Self {
        // Paths of sockets are short.
        let folder = tempfile::tempdir_in("/tmp").expect("a folder");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        let password = folder.path().join("password");
        fs::write(&password, "s3cret-pw\n").expect("written");
        if let Some((uid, gid)) = plan.become_user {
            for path in [folder.path(), &data, &password] {
                std::os::unix::fs::chown(path, Some(uid), Some(gid)).expect("we are root");
            }
        }
        let made = command(plan, "initdb", folder.path())
            .args([
                "--no-sync",
                "--locale=C",
                "--encoding=UTF8",
                "--username=owner",
            ])
            .args(["--auth=scram-sha-256", "--pwfile"])
            .arg(&password)
            .arg("-D")
            .arg(&data)
            .output()
            .expect("initdb starts");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        certificate(&data, plan);
        // Somebody else may take it before the server does: then the next one.
        for _ in 0..5 {
            let port = free_port();
            let child = command(plan, "postgres", folder.path())
                .arg("-D")
                .arg(&data)
                .args(["-p", &port.to_string(), "-k"])
                .arg(folder.path())
                .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
                .args(["-c", "ssl=on", "-c", "max_connections=20"])
                .stderr(Stdio::piped())
                .spawn()
                .expect("postgres starts");
            if let Some(child) = ready(child) {
                return Self {
                    child,
                    folder,
                    port,
                };
            }
        }
        panic!("no server came up")
    }

    pub(super) fn socket_folder(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// The authority of the server's certificate, which is for `db.test`.
    pub(super) fn ca_file(&self) -> PathBuf {
        self.folder.path().join("data/server.crt")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGQUIT: at once, without a checkpoint. The cluster goes with its folder.
        use rustix::process::{Pid, Signal, kill_process};
        let _gone = kill_process(Pid::from_child(&self.child), Signal::QUIT);
        let _reaped = self.child.wait();
    }
}

fn command(plan: &Plan, program: &str, folder: &Path) -> Command {
    let program = plan.bin.join(program);
    let mut command = match plan.become_user {
        None => Command::new(&program),
        Some((uid, gid)) => {
            let mut command = Command::new("setpriv");
            command
                .args(["--reuid", &uid.to_string(), "--regid", &gid.to_string()])
                .args(["--clear-groups", "--"])
                .arg(&program);
            command
        }
    };
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// The server, once it says that it is ready; `None` if it ends before.
fn ready(mut child: Child) -> Option<Child> {
    let log = child.stderr.take().expect("piped");
    let mut lines = BufReader::new(log).lines().map_while(Result::ok);
    let is_up = lines.any(|line| line.contains("ready to accept connections"));
    if is_up {
        // Or the server would stand still once the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        return Some(child);
    }
    let _reaped = child.wait();
    None
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    listener.local_addr().expect("bound").port()
}

fn certificate(data: &Path, plan: &Plan) {
    let names = vec!["db.test".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    for (file, pem) in [
        ("server.crt", made.cert.pem()),
        ("server.key", made.signing_key.serialize_pem()),
    ] {
        let path = data.join(file);
        fs::write(&path, pem).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
        if let Some((uid, gid)) = plan.become_user {
            std::os::unix::fs::chown(&path, Some(uid), Some(gid)).expect("we are root");
        }
    }
}
