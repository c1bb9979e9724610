//! The real `@modelcontextprotocol/server-filesystem` and `server-everything` from npm, through the program. `make test-mcp` fetches
//! them and runs this.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up is a failed test")]

mod servers;

use serde_json::json;
use servers::Servers;

fn servers() -> Servers {
    let bin = servers::folder("MOTE_TEST_MCP_NODE", "make test-mcp").join("node_modules/.bin");
    Servers::new(|root| {
        let files = root.join("files");
        std::fs::create_dir(&files).unwrap();
        std::fs::write(files.join("a.txt"), "one\n").unwrap();
        json!({
            "filesystem": {"command": bin.join("mcp-server-filesystem"), "args": [files], "trusted": true},
            "everything": {"command": bin.join("mcp-server-everything"), "reads": ["echo", "get-*"]},
        })
    })
}

#[test]
fn filesystem_and_everything_are_found_and_called() {
    let servers = servers();
    let list = servers.json(&["list", "--pack", "math"]);
    for server in list["servers"].as_array().unwrap() {
        assert_eq!(server["state"], "known", "{server}");
    }
    let file = servers.path("files/a.txt");
    let read = servers.json(&["call", "filesystem.read_text_file", &json!({"path": file}).to_string()]);
    assert!(read.to_string().contains("one"), "{read}");
    let write = json!({"path": file, "content": "two\n"}).to_string();
    assert_eq!(servers.run(&["call", "filesystem.write_file", &write]).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
    servers.json(&["call", "filesystem.write_file", &write, "--allow", "filesystem.write_file"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
    let outside = servers.run(&["call", "filesystem.read_text_file", r#"{"path": "/etc/passwd"}"#]);
    assert_eq!(outside.status.code(), Some(1), "{outside:?}");

    assert_eq!(servers.json(&["call", "everything.echo", r#"{"message": "hello"}"#]), "Echo: hello");
    let sum = servers.json(&["call", "everything.get_sum", r#"{"a": 2, "b": 3}"#]);
    assert!(sum.to_string().contains('5'), "{sum}");
    let image = servers.json(&["call", "everything.get_tiny_image"]);
    let is_image = |value: &serde_json::Value| value["kind"] == "image" && value["bytes"].as_u64() > Some(0);
    assert!(image.as_array().unwrap().iter().any(is_image), "{image}");
    let reads = ["--allow", "everything.*"];
    let resources = servers.json(&[&["call", "everything.list_resources"][..], &reads].concat());
    let uri = resources["resources"][0]["uri"].clone();
    servers.json(&[&["call", "everything.read_resource", &json!({"uri": uri}).to_string()][..], &reads].concat());
    let prompts = servers.json(&[&["call", "everything.list_prompts"][..], &reads].concat());
    assert!(prompts["prompts"].as_array().unwrap().iter().any(|prompt| prompt["name"] == "simple-prompt"), "{prompts}");
    let prompt =
        servers.json(&[&["call", "everything.get_prompt", r#"{"name": "simple-prompt"}"#][..], &reads].concat());
    assert!(prompt.to_string().contains("prompt"), "{prompt}");
    let weather = servers.json(&["call", "everything.get_structured_content", r#"{"location": "New York"}"#]);
    assert!(weather["temperature"].is_number(), "{weather}");
}
