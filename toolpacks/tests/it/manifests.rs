//! Every built-in manifest keeps the rules of docs/toolpacks.md; broken ones are refused with a reason.

use expect_test::expect;
use mote_toolpacks::{Pack, builtin};
use std::collections::HashSet;

const MAX_DESCRIPTION_CHARS: usize = 110;
const MAX_PARAMETERS: usize = 7;

#[test]
fn every_tool_is_described_for_a_small_model() {
    let mut tasks = HashSet::new();
    for pack in builtin().unwrap() {
        assert!(!pack.summary.contains('\n') && pack.summary.len() < 110, "{}", pack.name);
        for tool in pack.tools {
            let name = format!("{}.{}", pack.name, tool.name);
            assert!(
                !tool.description.contains('\n') && tool.description.chars().count() <= MAX_DESCRIPTION_CHARS,
                "{name}"
            );
            assert!((1..=4).contains(&tool.examples.len()), "{name}");
            assert!(tool.parameters["properties"].as_object().unwrap().len() <= MAX_PARAMETERS, "{name}");
            assert!(tool.result.is_some(), "{name}");
            for example in tool.examples {
                assert!(example.program.contains(&format!("{name}(")), "{name}: {}", example.program);
                assert!(example.program.lines().count() <= 6, "{name}: {}", example.program);
                assert!(tasks.insert(example.task.clone()), "{name}: {}", example.task);
            }
        }
    }
}

/// The examples teach patterns; they do not hand out the answers of the demonstration.
#[test]
fn no_example_is_a_demonstration_task() {
    let demonstrations = ["tokyo", "readme", "make test", "17.5", "2480", "./agent", "./toolpacks"];
    for pack in builtin().unwrap() {
        for example in pack.tools.iter().flat_map(|tool| &tool.examples) {
            let words = format!("{} {}", example.task, example.program).to_lowercase();
            assert!(!demonstrations.iter().any(|word| words.contains(word)), "{words}");
            assert!(!words.contains("disk(path=\"/\")"), "{words}");
        }
    }
}

#[test]
fn broken_manifests_are_refused() {
    let head = "name = \"p\"\nsummary = \"s\"\nversion = \"1\"\n";
    let tool = "[[tool]]\nname = \"t\"\ndescription = \"d\"\n";
    let broken = [
        "name = ".to_owned(),
        head.replace("\"p\"", "\"My Pack\"") + tool,
        format!("{head}{tool}{tool}"),
        format!("{head}{tool}colour = 1\n"),
        format!("{head}{tool}params = [{{ name = \"a\", type = \"text\", description = \"d\" }}]\n"),
        format!(
            "{head}{tool}params = [{{ name = \"a\", type = \"integer\", default = \"x\", description = \"d\" }}]\n"
        ),
        format!("{head}{tool}params = [{{ name = \"a-b\", type = \"integer\", description = \"d\" }}]\n"),
        format!("{head}{tool}result = \"{{\"\n"),
    ];
    let said: Vec<String> = broken.iter().map(|manifest| Pack::parse(manifest).unwrap_err().to_string()).collect();
    expect![[r#"
        toolpack.toml is not valid: TOML parse error at line 1, column 8
          |
        1 | name = 
          |        ^
        string values must be quoted, expected literal string
        --
        toolpack.toml is not valid: pack name is no identifier: "My Pack"
        hint: use lower case letters, digits and _
        --
        toolpack.toml is not valid: tool declared twice: p.t
        --
        toolpack.toml is not valid: TOML parse error at line 7, column 1
          |
        7 | colour = 1
          | ^^^^^^
        unknown field `colour`, expected one of `name`, `description`, `writes`, `params`, `result`, `example`
        --
        toolpack.toml is not valid: TOML parse error at line 7, column 32
          |
        7 | params = [{ name = "a", type = "text", description = "d" }]
          |                                ^^^^^^
        unknown variant `text`, expected one of `string`, `integer`, `number`, `boolean`, `numbers`, `strings`
        --
        toolpack.toml is not valid: p.t(a) must be an integer, not: "x"
        --
        toolpack.toml is not valid: parameter name is no identifier: "a-b"
        hint: use lower case letters, digits and _
        --
        toolpack.toml is not valid: result of p.t is not JSON: EOF while parsing an object at line 1 column 1"#]]
    .assert_eq(&said.join("\n--\n"));
}
