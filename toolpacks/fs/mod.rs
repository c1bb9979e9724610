//! `fs`: files and folders.
//!
//! Reading takes any path; writing goes only below `CallContext::writable`. Walks follow no symbolic link, so that no loop can
//! hold them, and visit a bounded number of entries.

mod list;
mod read;
mod search;
mod walk;
mod write;

use crate::arguments::Arguments;
use crate::context::Call;
use crate::{Error, catalogue};
use serde_json::Value;

pub(crate) fn call(tool: &str, arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    match tool {
        "list" => list::list(arguments, call),
        "read" => read::read(arguments, call),
        "head" => read::head(arguments, call),
        "tail" => read::tail(arguments, call),
        "stat" => read::stat(arguments, call),
        "search" => search::search(arguments, call),
        "largest" => list::largest(arguments, call),
        "usage" => list::usage(arguments, call),
        "write" => write::write(arguments, call),
        _ => Err(catalogue::not_built(tool)),
    }
}
