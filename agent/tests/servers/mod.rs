//! Real servers and a state folder, and the program that uses them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// The folder that the variable names; a test that lacks it says how to get it.
pub(crate) fn folder(variable: &str, target: &str) -> PathBuf {
    let value = std::env::var_os(variable);
    value.unwrap_or_else(|| panic!("{variable} is not set: run `{target}`, which fetches the servers")).into()
}

/// Configured servers.
pub(crate) struct Servers {
    root: tempfile::TempDir,
}

impl Servers {
    /// Makes a folder; `configure` fills it and gives the `mcpServers`.
    pub(crate) fn new(configure: impl FnOnce(&Path) -> Value) -> Servers {
        let root = tempfile::tempdir().unwrap();
        let servers = configure(root.path());
        std::fs::write(root.path().join("mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
        Servers { root }
    }

    /// A path below the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Runs `mote tools` with these servers.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mote"));
        command.args(["--json", "tools"]).args(arguments).arg("--mcp").arg(self.path("mcp.json"));
        command.env("MOTE_HOME", self.path("home")).current_dir(self.root.path()).output().unwrap()
    }

    /// What `mote tools` prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}
