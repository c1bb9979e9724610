//! A working folder with the files that the worked examples speak of, and a simulated machine.

use mote_toolpacks::{CallContext, CallLimits, Error, MemoryNotes, call};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) struct Fixture {
    folder: TempDir,
    pub(crate) notes: MemoryNotes,
    pub(crate) limits: CallLimits,
    writable: Vec<PathBuf>,
    system_root: PathBuf,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("todo.txt", "call Bob\nwater the plants\nbuy milk\n");
        write("notes.md", "# Notes\nMeet at noon.\nThen call Ada, ada@example.org\n");
        write("data/boot.log", "start\nerror: no clock\nready\n");
        write("data/old/run.log", "fine\n");
        write("photos/sea.jpg", &"x".repeat(1500));
        write("photos/hill.jpg", &"x".repeat(700));
        write("music/song.mp3", &"x".repeat(4200));
        write("music/live/set.flac", &"x".repeat(31000));
        write("plants.csv", "name,height\nfern,30\noak,2000\n");
        write("config.json", r#"{"server": {"host": "board", "port": 8080}, "users": [{"name": "ada"}]}"#);
        write("old.txt", "buy milk\ncall Ada\n");
        write("new.txt", "buy milk\ncall Bob\n");
        write("out/list.txt", "buy salt\n");
        let db = rusqlite::Connection::open(folder.path().join("shop.db")).unwrap();
        db.execute_batch("CREATE TABLE orders (id INTEGER, item TEXT); INSERT INTO orders VALUES (1, 'pen'), (2, 'ink'), (3, 'pad');")
            .unwrap();
        db.close().unwrap();
        let writable = vec![PathBuf::from("out")];
        Self {
            notes: MemoryNotes::default(),
            limits: CallLimits::default(),
            writable,
            system_root: PathBuf::from("/"),
            folder,
        }
    }

    /// A fixture on a simulated machine.
    pub(crate) fn machine(files: &[(&str, &str)]) -> Self {
        let mut fixture = Self::new();
        fixture.system_root = fixture.folder.path().join("machine");
        for (path, text) in files {
            let path = fixture.system_root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fixture
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn with_context<T>(&self, use_it: impl FnOnce(&CallContext<'_>) -> T) -> T {
        let mut context = CallContext::new(self.folder.path(), &self.notes);
        context.limits = self.limits;
        context.writable = &self.writable;
        context.system_root = &self.system_root;
        use_it(&context)
    }

    /// Calls `pack.tool` with arguments written as JSON.
    pub(crate) fn call(&self, name: &str, arguments: &str) -> Result<Value, Error> {
        let (pack, tool) = name.split_once('.').unwrap();
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        self.with_context(|context| call(pack, tool, arguments.as_object().unwrap(), context))
    }

    /// The `text` of a result, its JSON when it has none, or the error with its hint.
    pub(crate) fn said(&self, name: &str, arguments: &str) -> String {
        match self.call(name, arguments) {
            Ok(result) => result["text"].as_str().map_or_else(|| result.to_string(), str::to_owned),
            Err(e) => format!("error: {e}"),
        }
    }

    /// Each call and what it said, for snapshots.
    pub(crate) fn transcript(&self, calls: &[(&str, &str)]) -> String {
        let said = calls
            .iter()
            .map(|(name, arguments)| format!("{name} {arguments}\n  {}\n", indent(&self.said(name, arguments))));
        said.collect::<String>().replace(&self.folder.path().display().to_string(), "FOLDER")
    }
}

fn indent(text: &str) -> String {
    text.replace('\n', "\n  ")
}
