//! Bad disks and damaged files: one clear message each, and what was acknowledged is kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use expect_test::expect;

use super::*;

/// What the child tries, and where.
const CHILD: &str = "MOTE_TEST_CHILD_FAULT";
/// An account that owns nothing: to root no folder is read-only.
const NOBODY: u32 = 65_534;

/// Opens the store and appends until something fails, and says what; does nothing unless it is the child.
#[test]
fn child_that_fails() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let path = Path::new(&path);
    let folder = path.parent().unwrap();
    let failed = || -> Result<String> {
        let store = Store::open(path)?;
        let mut writer = store.queue().begin(header(0))?;
        for i in 0..10_000 {
            if let Err(error) = writer.append(&turn(i, &noise(2_000))) {
                fs::write(path.with_extension("acknowledged"), i.to_string()).unwrap();
                return Ok(said(&error, folder) + &said(&writer.append(&turn(i, "again")).unwrap_err(), folder));
            }
        }
        Ok("nothing failed".to_owned())
    };
    let text = failed().unwrap_or_else(|error| said(&error, folder));
    std::io::Write::write_all(&mut std::io::stdout(), format!("said {text}").as_bytes()).unwrap();
}

fn child(command: &mut Command, path: &Path) -> String {
    let output = command.env(CHILD, path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = text.split_once("said ").unwrap_or_else(|| panic!("{text}")).1;
    said.split("test store").next().unwrap().replace("ok\n", "").trim_end().to_owned()
}

#[test]
fn a_folder_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mote.db");
    drop(Store::open(&path).unwrap());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let exe = tempfile::Builder::new().tempdir().unwrap();
    fs::set_permissions(exe.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = exe.path().join("child");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = Command::new(&copy);
    command.args(["store::tests::faults::child_that_fails", "--exact", "--nocapture"]).current_dir("/");
    if fs::metadata(folder.path()).is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    let said = child(&mut command, &path);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    expect![[r#"
        Configuration: store cannot be written: DIR/mote.db.lock
          hint: make the folder writable, or set MOTE_HOME to one that is; `mote run --no-record` records nothing"#]]
    .assert_eq(&said);
}

#[test]
fn a_disk_that_fails_while_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mote.db");
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["store::tests::faults::child_that_fails", "--exact", "--nocapture"]);
    let said = child(&mut command, &path);
    expect![[r#"
        Failed: cannot read or write the store: DIR/mote.db: disk I/O error
          hint: check the disk (dmesg, free space), then start again
        Failed: store closed after a failure: DIR/mote.db
          hint: look at the first message; then start again"#]]
    .assert_eq(&said);
    let acknowledged: usize = fs::read_to_string(path.with_extension("acknowledged")).unwrap().parse().unwrap();
    let trajectory = Store::open(&path).unwrap().queue().load(header(0).traj_id).unwrap();
    assert!(acknowledged > 10);
    assert_eq!((trajectory.turns.len(), trajectory.gaps.len()), (acknowledged, 0));
}

#[test]
fn a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mote.db");
    let store = Store::open(&path).unwrap();
    store.run(|connection| connection.query_row("PRAGMA max_page_count = 40", [], |_| Ok(()))).unwrap();
    let mut writer = store.queue().begin(header(0)).unwrap();
    let mut acknowledged = 0;
    let error = loop {
        match writer.append(&turn(acknowledged, &noise(2_000))) {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    expect![[r#"
        TryAgain: no space left for the store: DIR/mote.db
          hint: free some space and try again; what was reported before is kept. `mote run --no-record` records nothing
    "#]]
    .assert_eq(&said(&error, folder.path()));
    assert!(acknowledged > 10);
    assert_eq!(store.queue().load(writer.id()).unwrap().turns.len(), acknowledged as usize);

    store.run(|connection| connection.query_row("PRAGMA max_page_count = 100", [], |_| Ok(()))).unwrap();
    writer.append(&turn(acknowledged, "there is room again")).unwrap();
    writer.seal(outcome(None)).unwrap();
    assert_eq!(store.queue().verify().unwrap().n_damages, 0);
}

#[test]
fn a_damaged_file_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mote.db");
    let mut notices = String::new();
    let mut reopen = |damage: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(&path).unwrap_or_default();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let store = Store::open(&path).unwrap();
        notices += &(store.notices().join("\n").replace(&folder.path().display().to_string(), "DIR") + "\n");
        let queue = store.queue();
        let mut writer = queue.begin(header(queue.list().unwrap().len() as u8)).unwrap();
        for i in 0..20 {
            writer.append(&turn(i, &noise(3_000))).unwrap();
        }
        writer.seal(outcome(None)).unwrap();
    };
    reopen(&|bytes| *bytes = noise(100_000).into_bytes());
    reopen(&|bytes| bytes[..16].fill(0));
    reopen(&|bytes| bytes.truncate(bytes.len() / 2));
    reopen(&|bytes| bytes[4_096..8_192].fill(0xa5));
    reopen(&|_| ());
    reopen(&|bytes| bytes[60..64].copy_from_slice(&9_u32.to_be_bytes()));
    reopen(&|bytes| bytes[68..72].copy_from_slice(&9_u32.to_be_bytes()));
    expect![[r#"
        store is damaged; it was set aside and a fresh store made: DIR/mote.db.corrupt-1
        store is damaged; it was set aside and a fresh store made: DIR/mote.db.corrupt-2
        store is damaged; it was set aside and a fresh store made: DIR/mote.db.corrupt-3
        store is damaged; it was set aside and a fresh store made: DIR/mote.db.corrupt-4

        store has version 9, this binary reads 1; it was set aside and a fresh store made: DIR/mote.db.version-9-1
        store is damaged; it was set aside and a fresh store made: DIR/mote.db.corrupt-5
    "#]]
    .assert_eq(&notices);
    assert_eq!(fs::read(folder.path().join("mote.db.corrupt-1")).unwrap(), noise(100_000).into_bytes());
}

#[test]
fn a_damaged_file_in_use_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mote.db");
    let open = Store::open(&path).unwrap();
    open.run(|connection| connection.execute_batch("PRAGMA user_version = 2")).unwrap();
    let error = Store::open(&path).unwrap_err();
    expect![[r#"
        TryAgain: store in use by another process for too long: DIR/mote.db.lock
          hint: end the other mote, then try again
    "#]]
    .assert_eq(&said(&error, folder.path()));
    drop(open);
    assert_eq!(Store::open(&path).unwrap().notices().len(), 1);
}

#[test]
fn damage_found_while_running_is_looked_for_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mote.db");
    let suspect = folder.path().join("mote.db.suspect");
    let store = Store::open(&path).unwrap();
    let error = store.run(|_| Err::<(), _>(file::damaged())).unwrap_err();
    let closed = store.queue().list().unwrap_err();
    expect![[r#"
        Configuration: store is damaged: DIR/mote.db
          hint: start again: a damaged file is set aside and a fresh one made
        Failed: store closed after a failure: DIR/mote.db
          hint: look at the first message; then start again
    "#]]
    .assert_eq(&(said(&error, folder.path()) + &said(&closed, folder.path())));
    assert!(suspect.exists());
    drop(store);
    assert!(Store::open(&path).unwrap().notices().is_empty());
    assert!(!suspect.exists());
}
