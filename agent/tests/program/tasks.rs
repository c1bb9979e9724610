//! Whole tasks with a scripted model: real tools, real queue, the real binary.

use std::fs;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::program::Program;

#[derive(Deserialize)]
struct Tasks {
    task: Vec<Task>,
}

#[derive(Deserialize)]
struct Task {
    task: String,
    script: String,
    answer: String,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default = "complete")]
    status: String,
}

fn complete() -> String {
    "complete".to_owned()
}

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn workplace() -> Program {
    let program = Program::new();
    let root = program.root();
    write(root, "README.md", "# Sample\n\nBuild it.\nRun `make test` for every quick test.\nEnd.\n");
    write(root, "todo.txt", "buy milk\ncall Ada\n");
    write(root, "done.txt", "buy milk\npaint the door\n");
    write(root, "toolpacks/README.md", "packs\n");
    write(root, "toolpacks/fs/toolpack.toml", "name = \"fs\"\n");
    write(root, "toolpacks/math/toolpack.toml", "name = \"math\"\n");
    for (path, size) in [("agent/a.rs", 3000), ("agent/b.rs", 2000), ("agent/deep/c.rs", 5000), ("agent/d.rs", 10)] {
        write(root, path, vec![b'x'; size]);
    }
    write(root, "data/plants.csv", "name,kind,height\nmint,herb,20\nthyme,herb,10\noak,tree,500\nbeech,tree,400\n");
    write(root, "data/config.json", "{\"server\": {\"host\": \"localhost\", \"port\": 8080}}");
    write(root, "data/boot.log", "mail to bob@example.org\nmail to ada@example.org\nmail to bob@example.org\n");
    fs::create_dir(root.join("out")).unwrap();
    program
}

fn run(program: &Program, task: &Task) -> (Option<i32>, Value) {
    write(program.root(), "script.txt", &task.script);
    let mut command = program.command(&["run", "--json", "--script", "script.txt"]);
    let output = command.args(&task.arguments).arg("--").arg(&task.task).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let last = stdout.lines().last().unwrap_or_default();
    let context = || format!("{}\n{stdout}\n{}", task.task, String::from_utf8_lossy(&output.stderr));
    let done: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", context()));
    let answer = done["answer"].as_str().unwrap_or_else(|| panic!("no answer: {}", context()));
    let wanted = Regex::new(&format!("^(?:{})$", task.answer)).unwrap();
    assert!(wanted.is_match(answer), "answer {answer:?} is not {:?}: {}", task.answer, context());
    assert_eq!(done["status"], task.status.as_str(), "{}", context());
    (output.status.code(), done)
}

#[test]
fn every_task_is_answered_right() {
    let tasks: Tasks = toml::from_str(include_str!("tasks/tasks.toml")).unwrap();
    assert!(tasks.task.len() >= 26);
    for task in &tasks.task {
        let program = workplace();
        let (code, done) = run(&program, task);
        assert_eq!(code, Some(if task.status == "complete" { 0 } else { 1 }), "{}", task.task);
        let id = done["trajectory"].as_str().unwrap();
        let shown = program.command(&["queue", "show", "--json", id]).output().unwrap();
        let trajectory: Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(trajectory["outcome"]["status"], task.status.as_str());
        assert_eq!(trajectory["outcome"]["answer"], done["answer"]);
        let programs = task.script.split("\n---\n").count();
        let written = trajectory["turns"].as_array().unwrap().iter().filter(|turn| turn["kind"] == "program").count();
        assert!(written >= 1 && written <= programs, "{}: {written} programs of {programs}", task.task);
    }
}
