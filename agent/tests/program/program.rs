//! One run of the binary with a state folder of its own.

use std::path::Path;
use std::process::{Command, Output};

/// A state folder and the way to run `mote` with it.
pub(crate) struct Program {
    root: tempfile::TempDir,
}

impl Program {
    /// An empty state folder.
    pub(crate) fn new() -> Program {
        Program { root: tempfile::tempdir().unwrap() }
    }

    /// The folder that holds the state folder, `home`, and whatever a test puts beside it.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The command, with nothing of this environment that could change what it does.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mote"));
        command.args(arguments).current_dir(self.root()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("MOTE_HOME", self.root().join("home"));
        command
    }

    /// Runs it: exit code, stdout and stderr as one text to compare with.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.show(&self.command(arguments).output().unwrap())
    }

    /// The same text for an output that is there already.
    pub(crate) fn show(&self, output: &Output) -> String {
        let code = output.status.code().map_or("killed".to_owned(), |code| code.to_string());
        let mut text = format!("exit {code}\n");
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            if !bytes.is_empty() {
                text.push_str(&format!("-- {name}\n{}", String::from_utf8_lossy(bytes)));
            }
        }
        text.replace(self.root().to_str().unwrap(), "ROOT")
    }
}
