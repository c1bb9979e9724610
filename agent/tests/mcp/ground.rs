//! A state folder with servers that misbehave, and the processes that belong to it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mote::cancel::Cancel;
use mote::home::Home;
use mote::tools::{ToolOptions, ToolOutcome, ToolRuntime};
use serde_json::{Map, Value, json};

pub(crate) const MOTE: &str = env!("CARGO_BIN_EXE_mote");
const FAKE_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/fake_server.py");

/// How long the guardian of a dead mote may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A state folder, an `mcp.json` and a mark by which the processes of this test are known.
pub(crate) struct Ground {
    root: tempfile::TempDir,
    mark: String,
}

impl Ground {
    pub(crate) fn new(servers: Value) -> Ground {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mark = format!("MOTE_TEST_MARK={}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let ground = Ground { root: tempfile::tempdir().unwrap(), mark };
        ground.configure(servers);
        ground
    }

    /// One server named `fake` in `mode`, whose reading tools are believed to read.
    pub(crate) fn fake(mode: &str) -> Ground {
        Ground::new(json!({"fake": {"args": [mode], "trusted": true, "tool_timeout_secs": 3}}))
    }

    pub(crate) fn configure(&self, mut servers: Value) {
        let (key, value) = self.mark.split_once('=').unwrap();
        for server in servers.as_object_mut().unwrap().values_mut() {
            let args = server["args"].as_array().unwrap().clone();
            server["args"] = [json!(FAKE_SERVER)].into_iter().chain(args).collect();
            server["command"] = json!("python3");
            server["env"] =
                json!({key: value, "FAKE_CHANGED": self.path("changed"), "FAKE_BROKEN": self.path("broken")});
        }
        std::fs::write(self.path("mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn open(&self) -> ToolRuntime {
        self.open_with(ToolOptions { discovery: PATIENCE, ..ToolOptions::default() }, Cancel::default())
    }

    pub(crate) fn open_with_packs(&self) -> ToolRuntime {
        let options = ToolOptions {
            mcp: Some(self.path("mcp.json")),
            guardian: Some(MOTE.into()),
            discovery: PATIENCE,
            ..ToolOptions::default()
        };
        ToolRuntime::open(&Home::at(&self.path("home")), options, Cancel::default()).unwrap()
    }

    pub(crate) fn open_with(&self, options: ToolOptions, cancel: Cancel) -> ToolRuntime {
        let options = ToolOptions {
            packs: Some(Vec::new()),
            mcp: Some(self.path("mcp.json")),
            guardian: Some(MOTE.into()),
            ..options
        };
        ToolRuntime::open(&Home::at(&self.path("home")), options, cancel).unwrap()
    }

    /// Processes with our mark in their environment.
    pub(crate) fn survivors(&self) -> Vec<String> {
        let has_mark = |process: &Path| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes())
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let command = |process: PathBuf| std::fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        processes.filter(|process| has_mark(process)).map(command).collect()
    }

    /// Processes with our mark's guardians as parents that have ended and that nobody has waited for.
    pub(crate) fn zombies(&self) -> usize {
        let stat = |process: &Path| std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        let field = |stat: &str, at: usize| {
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(at).map(str::to_owned))
        };
        let processes: Vec<PathBuf> = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).collect();
        let guardians: Vec<String> = processes
            .iter()
            .filter(|process| field(&stat(process), 1) == Some(std::process::id().to_string()))
            .filter_map(|process| Some(process.file_name()?.to_str()?.to_owned()))
            .collect();
        let is_ours = |stat: String| {
            field(&stat, 0).as_deref() == Some("Z") && field(&stat, 1).is_some_and(|id| guardians.contains(&id))
        };
        processes.iter().filter(|process| is_ours(stat(process))).count()
    }

    pub(crate) fn nothing_survives(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.survivors().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.survivors(), Vec::<String>::new());
    }
}

pub(crate) fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn call(runtime: &mut ToolRuntime, tool: &str, value: Value) -> ToolOutcome {
    runtime.call("fake", tool, &arguments(value))
}

/// The failure of a call as a person or model sees it.
pub(crate) fn failure(outcome: &ToolOutcome) -> String {
    let failure = outcome.result.as_ref().unwrap_err();
    let hint = failure.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    format!("{}: {}{hint}", failure.kind, failure.message)
}
