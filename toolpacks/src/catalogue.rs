//! The built-in packs: their descriptions and the way into them.

use crate::arguments::Arguments;
use crate::context::Call;
use crate::{CallContext, Error, ErrorKind, Pack, bounds};
use serde_json::{Map, Value};
use std::sync::OnceLock;

type Run = fn(&str, &Arguments, &Call<'_>) -> Result<Value, Error>;

/// Every built-in pack: its manifest and its code.
const BUILTIN: [(&str, Run); 7] = [
    (include_str!("../fs/toolpack.toml"), crate::fs::call),
    (include_str!("../system/toolpack.toml"), crate::system::call),
    (include_str!("../time/toolpack.toml"), crate::time::call),
    (include_str!("../math/toolpack.toml"), crate::math::call),
    (include_str!("../text/toolpack.toml"), crate::text::call),
    (include_str!("../data/toolpack.toml"), crate::data::call),
    (include_str!("../notes/toolpack.toml"), crate::notes::call),
];

/// The built-in packs, parsed once for the life of the process.
fn packs() -> Result<&'static [(Pack, Run)], Error> {
    static PACKS: OnceLock<Result<Vec<(Pack, Run)>, Error>> = OnceLock::new();
    let parse = || BUILTIN.iter().map(|(manifest, run)| Ok((Pack::parse(manifest)?, *run))).collect();
    PACKS.get_or_init(parse).as_deref().map_err(Clone::clone)
}

/// The built-in packs in their fixed order.
///
/// # Errors
/// [`ErrorKind::InvalidManifest`] when this build embeds a manifest that does not parse; a test holds that none does.
pub fn builtin() -> Result<Vec<Pack>, Error> {
    Ok(packs()?.iter().map(|(pack, _)| pack.clone()).collect())
}

/// Runs a built-in tool.
///
/// # Errors
/// [`ErrorKind::UnknownTool`], [`ErrorKind::InvalidArgument`] before the tool ran; what each tool says after.
pub fn call(pack: &str, tool: &str, arguments: &Map<String, Value>, context: &CallContext<'_>) -> Result<Value, Error> {
    let name = format!("{pack}.{tool}");
    let Some((found, run)) = packs()?.iter().find(|(found, _)| found.name == pack) else {
        let names: Vec<&str> = packs()?.iter().map(|(pack, _)| pack.name.as_str()).collect();
        return Err(Error::new(ErrorKind::UnknownTool, format!("no such toolpack: {pack}"))
            .with_hint(format!("built-in packs: {}", names.join(", "))));
    };
    let Some(found_tool) = found.tool(tool) else {
        let names: Vec<&str> = found.tools.iter().map(|tool| tool.name.as_str()).collect();
        return Err(Error::new(ErrorKind::UnknownTool, format!("no such tool: {name}"))
            .with_hint(format!("tools of {pack}: {}", names.join(", "))));
    };
    let arguments = Arguments::new(&name, found_tool, arguments)?;
    let call = Call::start(context);
    call.check()?;
    bounds::check_result(&call, run(tool, &arguments, &call)?)
}

/// A tool that its manifest declares and its module does not know; a test holds that there is none.
pub(crate) fn not_built(tool: &str) -> Error {
    Error::new(ErrorKind::UnknownTool, format!("declared and not built: {tool}"))
}
