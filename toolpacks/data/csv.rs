//! `csv`: a table with a header line.

use super::{row_line, source};
use crate::Error;
use crate::arguments::Arguments;
use crate::bounds::{Rows, counted};
use crate::context::Call;
use csv::{ByteRecord, ReaderBuilder};
use serde_json::{Map, Value, json};

const MAX_CSV_BYTES: u64 = 32 << 20;
const MAX_COLUMNS: usize = 1000;
/// Where a delimiter is guessed from the header line, these compete.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

pub(super) fn csv(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let bytes = source(arguments, call, MAX_CSV_BYTES)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let delimiter = match arguments.str("delimiter")? {
        "auto" => guess(bytes),
        "\\t" | "tab" => b'\t',
        one if one.len() == 1 && one.is_ascii() => one.as_bytes()[0],
        other => return Err(Error::invalid(format!("a delimiter is one ASCII character, not: {other}"))),
    };
    let mut reader = ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(bytes);
    let broken = |e: csv::Error| Error::invalid(format!("the CSV does not parse: {e}"));
    let columns = columns(reader.byte_headers().map_err(broken)?)?;
    let mut rows = Rows::new(call, arguments.count("limit")?);
    let (mut n_rows, mut record) = (0_usize, ByteRecord::new());
    while reader.read_byte_record(&mut record).map_err(broken)? {
        call.check()?;
        n_rows += 1;
        if rows.truncated() {
            continue;
        }
        let cells = columns.iter().zip(record.iter()).map(|(column, cell)| (column.clone(), typed(cell)));
        let row: Map<String, Value> = cells.collect();
        let line = row_line(&row);
        rows.push(row.into(), &line);
    }
    let truncated = rows.truncated();
    let (rows, text) = rows.finish(|| format!("the table has no rows, {}", counted(columns.len(), "column")));
    Ok(json!({
        "path": arguments.opt_str("path").unwrap_or("the text"), "columns": columns, "n_rows": n_rows, "rows": rows,
        "truncated": truncated, "text": text,
    }))
}

/// The header's names, empty and repeated ones numbered.
fn columns(header: &ByteRecord) -> Result<Vec<String>, Error> {
    if header.len() > MAX_COLUMNS {
        return Err(Error::limit("columns", MAX_COLUMNS as u64, header.len() as u64));
    }
    let mut columns: Vec<String> = Vec::with_capacity(header.len());
    for (column_idx, name) in header.iter().enumerate() {
        let name = String::from_utf8_lossy(name).trim().to_owned();
        let taken = name.is_empty() || columns.contains(&name);
        columns.push(if taken { format!("{name}_{}", column_idx + 1) } else { name });
    }
    Ok(columns)
}

fn guess(bytes: &[u8]) -> u8 {
    let header = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    let n = |delimiter: &u8| header.iter().filter(|b| *b == delimiter).count();
    DELIMITERS.iter().rev().max_by_key(|delimiter| n(delimiter)).copied().unwrap_or(b',')
}

/// A cell as the number it is, else as text. `007` and `1e5x` stay text.
fn typed(cell: &[u8]) -> Value {
    let text = String::from_utf8_lossy(cell);
    let trimmed = text.trim();
    let digits = trimmed.trim_start_matches(['-', '+']);
    let padded = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if !padded && digits.starts_with(|c: char| c.is_ascii_digit()) {
        if let Ok(n) = trimmed.parse::<i64>() {
            return n.into();
        }
        if let Some(x) = trimmed.parse::<f64>().ok().filter(|x| x.is_finite()) {
            return x.into();
        }
    }
    text.into_owned().into()
}
