//! `mote tools learn`: calls the reading tools of a server once and keeps an example of what each gives.

use serde_json::{Value, json};

use super::{SourceFlags, ToolFlags, first_line, open, tell};
use crate::cli::Globals;
use crate::error::{Error, ErrorKind, Result};
use crate::tools::Learned;

pub(super) fn learn(server: &str, sources: SourceFlags, globals: &Globals) -> Result<u8> {
    let out = &globals.out;
    let mut runtime = open(ToolFlags { sources, ..ToolFlags::default() }, globals)?;
    let lessons = runtime.learn(server)?;
    tell(&mut runtime, out);
    let n_learned = lessons.iter().filter(|(_, learned)| matches!(learned, Learned::Result(_))).count();
    if out.json() {
        let row = |(tool, learned): &(String, Learned)| match learned {
            Learned::Result(result) => json!({"tool": tool, "result": result, "why": Value::Null}),
            Learned::Nothing(why) => json!({"tool": tool, "result": Value::Null, "why": why}),
        };
        out.object(&json!({"server": server, "tools": lessons.iter().map(row).collect::<Vec<_>>()}))?;
    } else {
        for (tool, learned) in &lessons {
            out.line(&match learned {
                Learned::Result(result) => format!("{tool} gives such as {}", first_line(&result.to_string())),
                Learned::Nothing(why) => format!("{tool}: nothing learned: {}", first_line(why)),
            })?;
        }
    }
    if globals.cancel.is_cancelled() {
        return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
    }
    if n_learned == 0 {
        return Err(Error::new(ErrorKind::Failed, format!("nothing was learned of this server: {server}")).with_hint(
            "only tools that change nothing are called: name them with `reads` in mcp.json, or set `trusted`",
        ));
    }
    Ok(0)
}
