//! Where state lies: `MOTE_HOME` if set, else the XDG folders of the user.
//!
//! Folders are made when something is first written, never by looking.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// The folders of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    config: PathBuf,
    data: PathBuf,
    cache: PathBuf,
}

impl Home {
    /// All state below one folder.
    pub fn at(root: &Path) -> Home {
        Home { config: root.to_path_buf(), data: root.to_path_buf(), cache: root.join("cache") }
    }

    /// Reads `MOTE_HOME`, then `XDG_CONFIG_HOME`, `XDG_DATA_HOME` and `XDG_CACHE_HOME`, then `HOME`.
    pub fn from_environment() -> Result<Home> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(root) = variable("MOTE_HOME") {
            return Ok(Home::at(&root));
        }
        let home = variable("HOME");
        let folder = |name: &str, below: &str| {
            variable(name)
                .or_else(|| home.as_ref().map(|home| home.join(below)))
                .map(|base| base.join("mote"))
                .ok_or_else(|| {
                    Error::new(ErrorKind::Configuration, "no home folder: neither MOTE_HOME nor HOME is set")
                        .with_hint("set MOTE_HOME to a folder that mote may write")
                })
        };
        Ok(Home {
            config: folder("XDG_CONFIG_HOME", ".config")?,
            data: folder("XDG_DATA_HOME", ".local/share")?,
            cache: folder("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// `mcp.json`: the configured MCP servers.
    pub fn mcp_json(&self) -> PathBuf {
        self.config.join("mcp.json")
    }

    /// `policy.json`: who may be called, as a person wants it remembered.
    pub fn policy_json(&self) -> PathBuf {
        self.config.join("policy.json")
    }

    /// The folder of everything that is kept.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The folder that holds one folder a bundle.
    pub fn bundles(&self) -> PathBuf {
        self.data.join("bundles")
    }

    /// The database of queue and notes.
    pub fn store(&self) -> PathBuf {
        self.data.join("mote.db")
    }

    /// What can be made again: cached manifests of servers, spilled results.
    pub fn cache(&self) -> &Path {
        &self.cache
    }
}
