//! What a server gets without asking: what it takes to run, and what its entry names.
//!
//! It may read the system, its own installation and what lies beside its script; it may change the folder it works in, the folders and
//! files that its arguments and variables name, and a temporary folder of its own. The home folder is never given as a whole because
//! something lies in it, only where it is named. `sandbox` in the entry gives more.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Confinement, SandboxMode, Sockets};
use crate::tools::mcp::McpServer;

/// What programs read of a system to run at all.
const SYSTEM: [&str; 17] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/snap",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/var/lib/ca-certificates",
];

/// What programs read below the home folder and fail without, if it is there and may not be read.
const HOME_FILES: [&str; 3] = [".gitconfig", ".config/git", ".config/pip"];

/// What programs write to without changing anything.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm"];

/// Programs that fetch others, and where they keep them below the home folder.
const LAUNCHERS: [(&str, &[&str]); 10] = [
    ("npx", &[".npm"]),
    ("npm", &[".npm"]),
    ("uvx", &[".cache/uv", ".local/share/uv"]),
    ("uv", &[".cache/uv", ".local/share/uv"]),
    ("pipx", &[".cache/pipx", ".local/share/pipx", ".local/pipx"]),
    ("bunx", &[".bun"]),
    ("bun", &[".bun"]),
    ("deno", &[".cache/deno"]),
    ("pnpm", &[".local/share/pnpm", ".cache/pnpm"]),
    ("docker", &[".docker"]),
];

/// Files with these names are programs, not data.
const SCRIPTS: [&str; 8] = ["py", "js", "mjs", "cjs", "ts", "sh", "rb", "jar"];

/// A script may be run by a program that is a script, and no further.
const MAX_INTERPRETERS: usize = 4;

/// The first line of a script is no longer.
const MAX_FIRST_LINE: u64 = 512;

/// What the server may reach that runs in `folder`.
pub(crate) fn for_server(server: &McpServer, folder: &Path, mode: SandboxMode) -> Option<Confinement> {
    if mode == SandboxMode::Off {
        return None;
    }
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let mut grants = Grants { folder, home, read: Vec::new(), write: Vec::new() };
    grants.read.extend(SYSTEM.iter().map(PathBuf::from));
    grants.write.extend(DEVICES.iter().map(PathBuf::from));
    if let Some(home) = &grants.home {
        grants.read.extend(HOME_FILES.map(|file| home.join(file)));
    }
    grants.program(&server.command);
    if !grants.is_wide(&grants.folder) {
        grants.write.push(grants.folder.clone());
    }
    for text in server.args.iter().chain(server.env.values()) {
        grants.named(text);
    }
    let own = &server.sandbox;
    let read: Vec<PathBuf> = own.read.iter().map(|path| grants.own(path)).collect();
    let write: Vec<PathBuf> = own.write.iter().map(|path| grants.own(path)).collect();
    grants.read.extend(read);
    grants.write.extend(write);
    let network = own.network.unwrap_or(mode == SandboxMode::Auto);
    Some(Confinement {
        read: grants.read,
        write: grants.write,
        sockets: if network { Sockets::Any } else { Sockets::None },
        programs: true,
        strict: mode == SandboxMode::On,
    })
}

struct Grants {
    folder: PathBuf,
    home: Option<PathBuf>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
}

impl Grants {
    /// A path of the entry's own, from the folder that the server runs in; `~/` is the home folder.
    fn own(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.folder.join(path),
        }
    }

    /// Whether a folder holds far more than a server works on.
    fn is_wide(&self, folder: &Path) -> bool {
        let holds_home = self.home.as_ref().is_some_and(|home| home.starts_with(folder));
        holds_home || folder == Path::new("/") || folder == std::env::temp_dir() || folder == Path::new("/var")
    }

    /// The installation of a program, and of what runs it if it is a script.
    fn program(&mut self, command: &str) {
        let mut program = Some(command.to_owned());
        for _ in 0..MAX_INTERPRETERS {
            let Some(path) = program.take().and_then(|name| self.find(&name)) else { return };
            let launcher = LAUNCHERS.iter().find(|(name, _)| path.file_name() == Some(OsStr::new(name)));
            if let (Some((_, caches)), Some(home)) = (launcher, &self.home) {
                let caches: Vec<PathBuf> = caches.iter().map(|cache| home.join(cache)).collect();
                for cache in caches {
                    drop(std::fs::create_dir_all(&cache));
                    self.write.push(cache);
                }
            }
            self.installation(&path);
            if let Ok(real) = path.canonicalize() {
                self.installation(&real);
            }
            program = interpreter(&path);
        }
    }

    fn find(&self, command: &str) -> Option<PathBuf> {
        if command.contains('/') {
            return Some(self.folder.join(command)).filter(|path| path.is_file());
        }
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(command)).find(|path| path.is_file())
    }

    /// The folder above `bin`, the outermost `node_modules`, or the folder of the file.
    fn installation(&mut self, file: &Path) {
        self.read.push(file.to_path_buf());
        let Some(folder) = file.parent() else { return };
        let modules = file.ancestors().filter(|part| part.file_name() == Some(OsStr::new("node_modules"))).last();
        self.read.extend(modules.map(Path::to_path_buf));
        let is_bin =
            ["bin", "sbin", "shims", "Scripts"].iter().any(|name| folder.file_name() == Some(OsStr::new(name)));
        let whole = folder.parent().filter(|whole| is_bin && !self.is_wide(whole)).map(Path::to_path_buf);
        match whole {
            Some(local) if local.file_name() == Some(OsStr::new(".local")) => {
                self.read.extend(["bin", "lib", "share/uv", "share/pipx"].map(|below| local.join(below)));
            }
            Some(whole) => self.read.push(whole),
            None if !self.is_wide(folder) => self.read.push(folder.to_path_buf()),
            None => {}
        }
    }

    /// What an argument or a variable names, if it names something.
    fn named(&mut self, text: &str) {
        let text = text.split_once('=').map_or(text, |(flag, value)| if flag.starts_with('-') { value } else { text });
        if text.is_empty() || text.contains("://") || text.contains('\0') {
            return;
        }
        let path = self.own(text);
        if path.is_dir() {
            return self.write.push(path);
        }
        let is_there = path.is_file();
        let Some(folder) = path.parent().filter(|folder| is_there || (text.contains('/') && folder.is_dir())) else {
            return;
        };
        let is_script = path.extension().and_then(OsStr::to_str).is_some_and(|end| SCRIPTS.contains(&end));
        if is_there && is_script {
            self.installation(&path);
        } else if !self.is_wide(folder) {
            self.write.push(folder.to_path_buf());
        } else if is_there {
            self.write.push(path);
        }
    }
}

/// What runs a script, by its first line.
fn interpreter(script: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(script).ok()?.take(MAX_FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let program = words.next()?;
    if Path::new(program).file_name() == Some(OsStr::new("env")) {
        return words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned);
    }
    Some(program.to_owned())
}
