//! What a server said of itself, kept in the cache, so that it need not be started to be known.
//!
//! One file a server, keyed by the command that starts it and sealed with a hash. A file that is missing, damaged, of another format or
//! of another command is no error: the server is asked again.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::client::Listing;
use super::configuration::McpServer;
use crate::tools::catalogue::{ToolDescription, sha256_hex};

const FORMAT: u32 = 1;

/// More than any list of tools that the catalogue takes in practice.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A mark holds a hash.
const MAX_MARK_BYTES: u64 = 100;

#[derive(Serialize, Deserialize)]
struct Manifest {
    format: u32,
    command_sha256: String,
    tools_sha256: String,
    summary: String,
    tools: Vec<ToolDescription>,
}

/// The folder of the manifests.
#[derive(Clone, Debug)]
pub(crate) struct Manifests(PathBuf);

impl Manifests {
    /// The folder below the cache; it is made when something is first remembered.
    pub(crate) fn below(cache: &Path) -> Manifests {
        Manifests(cache.join("servers"))
    }

    /// What is remembered of `server`, whose name in the action language is `name`.
    pub(crate) fn load(&self, name: &str, server: &McpServer) -> Option<Listing> {
        let mut text = String::new();
        File::open(self.file(name)).ok()?.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
        let manifest: Manifest = serde_json::from_str(&text).ok()?;
        let fits = manifest.format == FORMAT
            && manifest.command_sha256 == command_sha256(server)
            && manifest.tools_sha256 == tools_sha256(&manifest.tools);
        fits.then_some(Listing { summary: manifest.summary, tools: manifest.tools })
    }

    /// What is equal as long as the file of `server` is, without reading it; nothing if there is none.
    pub(crate) fn stamp(&self, name: &str, server: &McpServer) -> Option<String> {
        let file = fs::metadata(self.file(name)).ok()?;
        let changed = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(format!("{} {} {}", command_sha256(server), file.len(), changed.as_nanos()))
    }

    /// Remembers what `server` said; a power cut leaves the old file or the new one.
    pub(crate) fn save(&self, name: &str, server: &McpServer, listing: &Listing) -> io::Result<()> {
        let manifest = Manifest {
            format: FORMAT,
            command_sha256: command_sha256(server),
            tools_sha256: tools_sha256(&listing.tools),
            summary: listing.summary.clone(),
            tools: listing.tools.clone(),
        };
        fs::create_dir_all(&self.0)?;
        drop(fs::remove_file(self.mark(name)));
        let path = self.file(name);
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        let written = File::create(&fresh).and_then(|mut file| {
            file.write_all(&serde_json::to_vec(&manifest)?)?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&fresh, path)).inspect_err(|_| drop(fs::remove_file(&fresh)))
    }

    /// Whether `server` was asked before and has not answered in time.
    pub(crate) fn was_late(&self, name: &str, server: &McpServer) -> bool {
        let mut marked = String::new();
        let read = File::open(self.mark(name)).and_then(|file| file.take(MAX_MARK_BYTES).read_to_string(&mut marked));
        read.is_ok() && marked == command_sha256(server)
    }

    /// Remembers that `server` has not answered in time; a mark that cannot be made costs a wait and nothing else.
    pub(crate) fn mark_late(&self, name: &str, server: &McpServer) {
        drop(fs::create_dir_all(&self.0).and_then(|()| fs::write(self.mark(name), command_sha256(server))));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    fn mark(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.late"))
    }
}

/// What decides which program runs and what it offers. Of the environment only the names: its values may be secrets.
fn command_sha256(server: &McpServer) -> String {
    let cwd = server.cwd.as_deref().map(|cwd| cwd.as_os_str().as_encoded_bytes()).unwrap_or_default();
    let args = server.args.iter().map(String::as_bytes);
    let env = server.env.keys().map(String::as_bytes);
    let n_args = server.args.len().to_string();
    sha256_hex([server.command.as_bytes(), cwd, n_args.as_bytes()].into_iter().chain(args).chain(env))
}

fn tools_sha256(tools: &[ToolDescription]) -> String {
    let hashes: Vec<String> = tools.iter().map(ToolDescription::sha256).collect();
    sha256_hex(hashes.iter().map(String::as_bytes))
}
