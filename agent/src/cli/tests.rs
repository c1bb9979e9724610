//! The command line against its document.

use std::collections::BTreeMap;

use clap::CommandFactory;

use super::Cli;

/// Every command that does something, with its arguments: long flags, and the names of what stands without one.
fn built() -> BTreeMap<String, Vec<String>> {
    fn walk(command: &clap::Command, name: &str, found: &mut BTreeMap<String, Vec<String>>) {
        for below in command.get_subcommands() {
            walk(below, &format!("{name} {}", below.get_name()), found);
        }
        if command.has_subcommands() && command.is_subcommand_required_set() {
            return;
        }
        let mut arguments: Vec<String> = command
            .get_arguments()
            .filter(|argument| !argument.is_global_set() && !["help", "version"].contains(&argument.get_id().as_str()))
            .map(|argument| match argument.get_long() {
                Some(long) => format!("--{long}"),
                None => argument.get_value_names().map(|names| names.join(" ")).unwrap_or_default(),
            })
            .collect();
        arguments.sort();
        found.insert(name.to_owned(), arguments);
    }
    let mut found = BTreeMap::new();
    walk(&Cli::command(), "mote", &mut found);
    found.remove("mote");
    found
}

/// The table of commands in `docs/cli.md`: the code spans of a row's first cell (names of one command) and
/// second cell.
fn documented() -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md")).unwrap();
    let table = text.split("\n## Commands\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let spans = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| {
            let cells: Vec<&str> = line.split(" | ").collect();
            let mut arguments = spans(cells[1]);
            arguments.sort();
            spans(cells[0]).into_iter().map(move |name| (name, arguments.clone()))
        })
        .collect()
}

#[test]
fn the_document_lists_every_command_and_argument() {
    let (built, documented) = (built(), documented());
    let missing: Vec<_> = built.iter().filter(|(name, arguments)| documented.get(*name) != Some(arguments)).collect();
    let too_many: Vec<_> = documented.keys().filter(|name| !built.contains_key(*name)).collect();
    assert!(
        missing.is_empty() && too_many.is_empty(),
        "docs/cli.md differs from the program\n  rows to write: {missing:?}\n  rows without a command: {too_many:?}"
    );
}

#[test]
fn every_command_is_well_formed_and_says_what_it_does() {
    fn check(command: &clap::Command) {
        assert!(command.get_about().is_some(), "no description: {}", command.get_name());
        for argument in command.get_arguments().filter(|argument| argument.get_id() != "help") {
            assert!(argument.get_help().is_some(), "no help: {} {}", command.get_name(), argument.get_id());
        }
        command.get_subcommands().for_each(check);
    }
    Cli::command().debug_assert();
    check(&Cli::command());
}
