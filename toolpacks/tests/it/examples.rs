//! Every worked example names only tools and parameters that exist.

use mote_toolpacks::builtin;
use regex::Regex;
use std::collections::HashMap;

#[test]
fn examples_name_only_what_exists() {
    let packs = builtin().unwrap();
    let tools: HashMap<String, Vec<String>> = packs
        .iter()
        .flat_map(|pack| pack.tools.iter().map(move |tool| (pack, tool)))
        .map(|(pack, tool)| {
            let parameters = tool.parameters["properties"].as_object().unwrap().keys().cloned().collect();
            (format!("{}.{}", pack.name, tool.name), parameters)
        })
        .collect();
    let call = Regex::new(r"\b([a-z_]+\.[a-z_]+)\(([^()]*)\)").unwrap();
    let keyword = Regex::new(r"([a-z_]+)=").unwrap();
    let strings = Regex::new(r#""[^"]*""#).unwrap();
    for example in packs.iter().flat_map(|pack| &pack.tools).flat_map(|tool| &tool.examples) {
        let program = strings.replace_all(&example.program, "\"\"");
        for found in call.captures_iter(&program) {
            let parameters = tools.get(&found[1]).unwrap_or_else(|| panic!("no such tool: {}", &found[1]));
            for named in keyword.captures_iter(&found[2]) {
                assert!(parameters.contains(&named[1].to_owned()), "{}: {}", &found[1], &named[1]);
            }
        }
        assert!(example.program.contains("answer("), "{}", example.program);
    }
}
