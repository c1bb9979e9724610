//! `sqlite`, `tables`: reading a database.
//!
//! Three walls keep it a reading: the file is opened read-only, the statement must be `readonly`, and an authorizer lets only
//! reading pass (no ATTACH, no PRAGMA but those which describe a table, no extension). The query runs in its own thread, so that a
//! statement without rows can be interrupted when the call is cancelled or out of time.

use super::row_line;
use crate::arguments::Arguments;
use crate::bounds::Rows;
use crate::context::Call;
use crate::{Error, ErrorKind, files};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row, Statement};
use serde_json::{Map, Value, json};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

const MAX_QUERY_BYTES: usize = 16 << 10;
/// A cell and a row in the memory of SQLite.
const MAX_VALUE_BYTES: i32 = 1 << 20;
const MAX_COLUMNS: i32 = 200;
const MAX_CELL_BYTES: usize = 4096;
const POLL: Duration = Duration::from_millis(10);
/// Rows waiting between SQLite's thread and the one that bounds the result.
const QUEUED_ROWS: usize = 16;

type Named = Map<String, Value>;

enum Sent {
    Columns(Vec<String>),
    Row(Named),
}

pub(super) fn query(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (path, query) = (arguments.path("path")?, arguments.str("query")?);
    let connection = open(call, path)?;
    let mut rows = Rows::new(call, arguments.count("limit")?);
    let mut columns = Vec::new();
    run(call, connection, query, |sent| match sent {
        Sent::Columns(names) => {
            columns = names;
            true
        }
        Sent::Row(row) => {
            let line = row_line(&row);
            rows.push(row.into(), &line)
        }
    })?;
    let (n_rows, truncated) = (rows.len(), rows.truncated());
    let (rows, text) = rows.finish(|| "the query gives no rows".to_owned());
    Ok(json!({
        "path": path, "columns": columns, "n_rows": n_rows, "rows": rows, "truncated": truncated, "text": text,
    }))
}

pub(super) fn tables(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    const COLUMNS: &str = "SELECT m.name AS name, p.name AS column FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p \
                           WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, p.cid";
    let path = arguments.path("path")?;
    let mut tables: Vec<(String, Vec<String>)> = Vec::new();
    run(call, open(call, path)?, COLUMNS, |sent| {
        if let Sent::Row(row) = sent {
            let cell = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            match tables.last_mut().filter(|(table, _)| *table == cell("name")) {
                Some((_, columns)) => columns.push(cell("column")),
                None => tables.push((cell("name"), vec![cell("column")])),
            }
        }
        tables.len() <= call.context.limits.max_entries
    })?;
    let mut rows = Rows::new(call, usize::MAX);
    for (name, columns) in tables {
        let line = format!("{name}: {}", columns.join(", "));
        if !rows.push(json!({"name": name, "columns": columns}), &line) {
            break;
        }
    }
    let (count, truncated) = (rows.len(), rows.truncated());
    let (tables, text) = rows.finish(|| format!("{path} has no tables"));
    Ok(json!({"path": path, "count": count, "tables": tables, "truncated": truncated, "text": text}))
}

fn open(call: &Call<'_>, path: &str) -> Result<Connection, Error> {
    let place = files::resolve(call, path);
    files::open(&place, path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(&place, flags).map_err(|e| failed(&e))?;
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
        (Limit::SQLITE_LIMIT_COLUMN, MAX_COLUMNS),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
    ] {
        connection.set_limit(limit, value).map_err(|e| failed(&e))?;
    }
    connection.pragma_update(None, "trusted_schema", false).map_err(|e| failed(&e))?;
    connection.busy_timeout(Duration::from_secs(1).min(call.context.limits.timeout)).map_err(|e| failed(&e))?;
    connection.authorizer(Some(authorize)).map_err(|e| failed(&e))?;
    Ok(connection)
}

fn authorize(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if function_name != "load_extension" => Authorization::Allow,
        AuthAction::Pragma { pragma_name: "table_info", .. } => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

/// Runs one statement in its own thread and hands over its columns and rows until `take` returns `false`.
fn run(call: &Call<'_>, connection: Connection, query: &str, mut take: impl FnMut(Sent) -> bool) -> Result<(), Error> {
    if query.len() > MAX_QUERY_BYTES {
        return Err(Error::limit("query in bytes", MAX_QUERY_BYTES as u64, query.len() as u64));
    }
    let interrupt = connection.get_interrupt_handle();
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(QUEUED_ROWS);
        let worker = scope.spawn(move || read(&connection, query, |sent| sender.send(sent).is_ok()));
        let ended = loop {
            if let Err(e) = call.check() {
                break Some(Err(e));
            }
            match receiver.recv_timeout(POLL) {
                Ok(sent) => {
                    if !take(sent) {
                        break Some(Ok(()));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        drop(receiver);
        while !worker.is_finished() {
            interrupt.interrupt();
            std::thread::sleep(Duration::from_millis(1));
        }
        let read = worker.join().unwrap_or_else(|_| Err(Error::new(ErrorKind::Io, "the query's thread ended badly")));
        ended.unwrap_or(read)
    })
}

/// Reads one statement until it ends or `send` refuses.
fn read(connection: &Connection, query: &str, mut send: impl FnMut(Sent) -> bool) -> Result<(), Error> {
    let mut statement: Statement<'_> = connection.prepare(query).map_err(|e| failed(&e))?;
    if !statement.readonly() {
        return Err(refused());
    }
    if statement.parameter_count() > 0 {
        return Err(Error::invalid("the query has open parameters").with_hint("write the values into the query"));
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    if columns.is_empty() {
        return Err(Error::invalid("the query gives no rows").with_hint("write one SELECT"));
    }
    if !send(Sent::Columns(columns.clone())) {
        return Ok(());
    }
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|e| failed(&e))? {
        if !send(Sent::Row(named(row, &columns)?)) {
            break;
        }
    }
    Ok(())
}

fn named(row: &Row<'_>, columns: &[String]) -> Result<Named, Error> {
    let mut named = Named::new();
    for (column_idx, column) in columns.iter().enumerate() {
        let value = match row.get_ref(column_idx).map_err(|e| failed(&e))? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(n) => n.into(),
            ValueRef::Real(x) => x.into(),
            ValueRef::Text(text) => {
                let text = String::from_utf8_lossy(text);
                let (text, cut) = crate::bounds::fit(&text, MAX_CELL_BYTES);
                if cut { format!("{text}..").into() } else { text.into() }
            }
            ValueRef::Blob(bytes) => format!("blob of {}", crate::bounds::human_size(bytes.len() as u64)).into(),
        };
        named.insert(column.clone(), value);
    }
    Ok(named)
}

fn refused() -> Error {
    Error::new(ErrorKind::Permission, "the database is read-only here").with_hint("write one SELECT")
}

fn failed(e: &rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    let message = match e {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::MultipleStatement => {
            return Error::invalid("one statement only").with_hint("write one SELECT");
        }
        e => e.to_string(),
    };
    match e.sqlite_error_code() {
        Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => refused(),
        Some(ErrorCode::NotADatabase) => Error::invalid("is no SQLite database"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::new(ErrorKind::Io, "the database is locked").with_hint("try again")
        }
        Some(ErrorCode::OutOfMemory | ErrorCode::TooBig) => {
            Error::new(ErrorKind::Io, "the query needs too much memory")
                .with_hint(format!("a value holds at most {MAX_VALUE_BYTES} bytes"))
        }
        _ => Error::invalid(format!("SQLite says: {message}")).with_hint("see the tables with data.tables(path=..)"),
    }
}
