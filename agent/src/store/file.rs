//! The file itself: opening, checking, its tables, and setting aside one that cannot be used.
//!
//! A lock file beside it is held shared by every process that has the store open, so that nobody sets a file aside
//! under another's feet.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::{BUSY_TIMEOUT, explain, is_damage, not_writable};
use crate::error::{Error, ErrorKind, Result};

/// `PRAGMA user_version`: the version of the tables.
const VERSION: i64 = 1;
/// `PRAGMA application_id`: `mote` in ASCII.
const APPLICATION: i64 = 0x6d6f_7465;
/// A larger file is checked as a whole only after an unclean end, to keep the start short: 85 MB take 0.13 s from
/// memory and some seconds from a slow card.
const CHECKED_BYTES: u64 = 16 << 20;
/// Stands beside a file in which damage was found, so that the next start looks for it.
const SUSPECT: &str = ".suspect";
/// How many files lie aside at most; then a damaged store is an error, because deleting is not ours to decide.
const ASIDE_MAX: u32 = 16;
/// How often the lock is asked for, and how long in between.
const LOCK_TRIES: u32 = 20;
const LOCK_WAIT: Duration = Duration::from_millis(100);

const TABLES: &str = "
CREATE TABLE trajectories (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  teaches INTEGER,
  n_bytes INTEGER NOT NULL DEFAULT 0,
  self_digest BLOB
) STRICT;
CREATE TABLE records (
  key INTEGER PRIMARY KEY,
  crc INTEGER NOT NULL,
  payload BLOB NOT NULL
) STRICT;
CREATE TABLE tombstones (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  self_digest BLOB
) STRICT;
CREATE TABLE chain (
  head BLOB NOT NULL
) STRICT;
CREATE TABLE notes (
  key TEXT PRIMARY KEY,
  text TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO chain VALUES (zeroblob(32));
";

enum Attempt {
    Opened(Connection),
    Unusable { suffix: String, why: String },
}

/// Opens the store at `path`: the connection, the lock to hold as long, and notices of what was set aside.
pub(super) fn open(path: &Path) -> Result<(Connection, File, Vec<String>)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| of_folder(folder, &error))?;
    let lock_path = beside(path, ".lock");
    for place in [&lock_path, path] {
        if fs::metadata(place).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Error::new(ErrorKind::Configuration, format!("no regular file: {}", place.display()))
                .with_hint("move it away, or set MOTE_HOME to another folder"));
        }
    }
    let lock = File::options().create(true).truncate(false).write(true).open(&lock_path);
    let lock = lock.map_err(|error| of_folder(&lock_path, &error))?;
    hold(&lock, &lock_path, File::try_lock_shared)?;

    let mut notices = Vec::new();
    let connection = match attempt(path)? {
        Attempt::Opened(connection) => connection,
        Attempt::Unusable { suffix, why } => {
            hold(&lock, &lock_path, File::try_lock)?;
            let aside = set_aside(path, &suffix)?;
            notices.push(format!("{why}; it was set aside and a fresh store made: {}", aside.display()));
            let fresh = attempt(path)?;
            hold(&lock, &lock_path, File::try_lock_shared)?;
            match fresh {
                Attempt::Opened(connection) => connection,
                Attempt::Unusable { why, .. } => return Err(Error::new(ErrorKind::Configuration, why)),
            }
        }
    };
    match fs::remove_file(beside(path, SUSPECT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(of_folder(path, &error)),
        _ => {}
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| of_folder(folder, &error))?;
    Ok((connection, lock, notices))
}

fn attempt(path: &Path) -> Result<Attempt> {
    match prepare(path) {
        Ok(Ok(connection)) => Ok(Attempt::Opened(connection)),
        Ok(Err(version)) => Ok(Attempt::Unusable {
            suffix: format!("version-{version}"),
            why: format!("store has version {version}, this binary reads {VERSION}"),
        }),
        Err(error) if is_damage(&error) => {
            Ok(Attempt::Unusable { suffix: "corrupt".to_owned(), why: "store is damaged".to_owned() })
        }
        Err(error) => Err(explain(path, &error)),
    }
}

/// The connection, or the version of the file if this binary does not know it.
fn prepare(path: &Path) -> rusqlite::Result<std::result::Result<Connection, i64>> {
    let n_bytes = |suffix| fs::metadata(beside(path, suffix)).map_or(0, |metadata| metadata.len());
    let is_checked = n_bytes("") <= CHECKED_BYTES || n_bytes("-wal") > 0 || beside(path, SUSPECT).exists();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", 256)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;

    let version = match versions(&connection)? {
        (0, 0) => create(&mut connection)?,
        versions => versions,
    };
    match version {
        (APPLICATION, VERSION) if is_checked => check(&connection).map(|()| Ok(connection)),
        (APPLICATION, VERSION) => Ok(Ok(connection)),
        (APPLICATION, version) => Ok(Err(version)),
        _ => Err(damaged()),
    }
}

fn versions(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get(0));
    Ok((number("application_id")?, number("user_version")?))
}

/// Makes the tables, unless another process has just done so or the file is somebody else's; gives the versions then.
fn create(connection: &mut Connection) -> rusqlite::Result<(i64, i64)> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if transaction.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))? {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    let versions = versions(&transaction)?;
    transaction.commit()?;
    Ok(versions)
}

fn check(connection: &Connection) -> rusqlite::Result<()> {
    let said: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if said == "ok" { Ok(()) } else { Err(damaged()) }
}

/// Notes that damage was found, for the next start. Where this cannot be written, that start cannot open the store either.
pub(super) fn suspect(path: &Path) {
    drop(File::create(beside(path, SUSPECT)));
}

/// The error that SQLite itself gives when it finds damage.
pub(super) fn damaged() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), None)
}

fn set_aside(path: &Path, suffix: &str) -> Result<PathBuf> {
    let mut free = (1..=ASIDE_MAX).map(|n| beside(path, &format!(".{suffix}-{n}")));
    let aside = free.find(|aside| !aside.exists()).ok_or_else(|| {
        Error::new(
            ErrorKind::Configuration,
            format!("damaged stores set aside: limit {ASIDE_MAX}, used {ASIDE_MAX}: {}", path.display()),
        )
        .with_hint("check the disk, and move away or delete the files that were set aside")
    })?;
    for part in ["-wal", "-shm", ""] {
        match fs::rename(beside(path, part), beside(&aside, part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(of_folder(path, &error)),
            _ => {}
        }
    }
    Ok(aside)
}

fn hold(lock: &File, path: &Path, ask: impl Fn(&File) -> std::result::Result<(), TryLockError>) -> Result<()> {
    for _ in 0..LOCK_TRIES {
        match ask(lock) {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => sleep(LOCK_WAIT),
            Err(TryLockError::Error(error)) => return Err(of_folder(path, &error)),
        }
    }
    Err(Error::new(ErrorKind::TryAgain, format!("store in use by another process for too long: {}", path.display()))
        .with_hint("end the other mote, then try again"))
}

fn of_folder(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::new(ErrorKind::TryAgain, format!("no space left for the store: {}", path.display()))
                .with_hint("free some space and try again; `mote run --no-record` records nothing")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            not_writable(&path.display().to_string())
        }
        _ => Error::new(ErrorKind::Configuration, format!("cannot open the store: {}: {error}", path.display()))
            .with_hint("set MOTE_HOME to a folder that mote may write"),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
