//! Who may do what: `unsafe`, SQL, processes, sockets and printing each have their homes.

use crate::source::{self, Source};
use crate::tree;

/// Fails for every file of the program outside `homes` for which `does` holds.
fn only_in(homes: &[&str], what: &str, does: impl Fn(&Source) -> bool) {
    let faults: Vec<String> = source::program()
        .iter()
        .filter(|source| !homes.iter().any(|home| source.is_in(home)) && does(source))
        .map(|source| source.path.display().to_string())
        .collect();
    tree::none(&format!("{what} outside {}", homes.join(", ")), &faults);
}

#[test]
fn unsafe_lives_in_kernels_the_memory_map_and_os() {
    only_in(&["agent/kernels", "agent/model/src/map.rs", "agent/src/os.rs"], "unsafe code", |source| {
        source.names("unsafe")
    });
}

#[test]
fn sql_lives_in_the_store_and_the_data_pack() {
    only_in(&["agent/src/store", "toolpacks/data"], "SQL", |source| source.names("rusqlite"));
}

#[test]
fn processes_are_started_by_mcp_alone() {
    only_in(&["agent/src/tools/mcp", "agent/src/tools/mcp.rs"], "a started process", |source| {
        ["process::Command", "TokioChildProcess"].iter().any(|name| source.names(name))
    });
}

#[test]
fn sockets_have_no_home_yet() {
    only_in(&["agent/src/tools/mcp"], "a socket", |source| {
        ["TcpStream", "TcpListener", "UdpSocket", "UnixListener", "UnixStream"].iter().any(|name| source.names(name))
    });
}

#[test]
fn only_the_command_line_prints() {
    only_in(&["agent/src/cli", "agent/src/main.rs"], "printing", |source| {
        let macros = ["print", "println", "eprint", "eprintln"];
        source.macros.iter().any(|name| macros.contains(&name.as_str()))
            || ["io::stdout", "io::stderr"].iter().any(|name| source.names(name))
    });
}

#[test]
fn only_the_model_knows_tract() {
    only_in(&["agent/model"], "tract", |source| {
        source.paths.iter().any(|path| path.split("::").any(|part| part.starts_with("tract_")))
    });
}

#[test]
fn nothing_is_unfinished_or_switched_off() {
    let marks = [
        format!("{}{}", "TO", "DO"),
        format!("{}{}", "FIX", "ME"),
        format!("#[{}", "ignore"),
        format!("{}_{}!", "un", "implemented"),
    ];
    let mut faults = Vec::new();
    for path in tree::files(&[".rs", ".py", ".md", ".toml", ".sh"]) {
        for (idx, line) in tree::read(&path).lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark.as_str())) {
                faults.push(format!("{}:{}: {}", path.display(), idx + 1, line.trim()));
            }
        }
    }
    tree::none("something is unfinished or switched off", &faults);
}
