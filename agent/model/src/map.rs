//! Memory maps: files that are read where they lie, and memory that is given only where it is written.
//!
//! Besides `mote-kernels` the only home of `unsafe` in the runtime. Files are never written in place, neither bundles nor
//! snapshots: they are replaced by a new file of their name. A file that someone shortens all the same, or a disk that fails,
//! makes the kernel raise SIGBUS where the missing page is read. There is no way back into the computation from there, so the
//! process says what happened and ends with [`LOST_FILE_EXIT_CODE`]; a SIGBUS from elsewhere is left to whom it concerns.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use memmap2::{Advice, Mmap, MmapMut, MmapOptions};

/// The exit code where a mapped file lost pages: that of a damaged bundle.
pub const LOST_FILE_EXIT_CODE: i32 = 78;

const LOST_FILE: &[u8] = b"mote: a mapped file of the model became shorter while it was read, or its disk failed\n  \
hint: check the disk, then import the bundle again with `mote model import PATH`\n";

/// Maps that are watched at the same time: a bundle, its adapters and snapshots. One more is not watched.
const MAX_WATCHED: usize = 64;
/// Bytes that are asked for and touched at a time while a map is warmed.
const WARM_CHUNK_BYTES: usize = 16 << 20;

/// A whole file, mapped read-only.
pub(crate) struct FileMap {
    map: Mmap,
    _watch: Watch,
}

impl FileMap {
    /// Asks for pages of 2 MiB, which spare walks of the page table where the file system keeps large folios (Linux 6.16 on
    /// ext4); elsewhere asking changes nothing.
    pub(crate) fn open(file: &File) -> io::Result<FileMap> {
        // SAFETY: the map is read-only and private to this process's address space; bundles and snapshots are never written
        // in place, so the bytes behind the slice do not change while it is borrowed.
        let map = unsafe { Mmap::map(file) }?;
        #[cfg(target_os = "linux")]
        let _ = map.advise(Advice::HugePage);
        let watch = Watch::new(&map);
        Ok(FileMap { map, _watch: watch })
    }

    /// Brings the file into memory from front to back, so that later reads find their pages. `go_on` is asked now and then.
    /// A system that cannot do that does it page by page later.
    pub(crate) fn warm(&self, go_on: &dyn Fn() -> bool) {
        for start in (0..self.map.len()).step_by(WARM_CHUNK_BYTES) {
            let ahead = start + WARM_CHUNK_BYTES..self.map.len().min(start + 3 * WARM_CHUNK_BYTES);
            if !ahead.is_empty() {
                let _ = self.map.advise_range(Advice::WillNeed, ahead.start, ahead.len());
            }
            let length = WARM_CHUNK_BYTES.min(self.map.len() - start);
            if !go_on() || self.map.advise_range(Advice::PopulateRead, start, length).is_err() {
                return;
            }
        }
    }
}

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

/// Bytes that can be written: zeros, or those of a file, of which a page is copied when it is first written.
pub(crate) struct Memory {
    map: MmapMut,
    _watch: Option<Watch>,
}

impl Memory {
    /// Zeros. The system gives memory to the pages that are touched.
    pub(crate) fn zeroed(bytes: usize) -> io::Result<Memory> {
        Ok(Memory { map: MmapMut::map_anon(bytes.max(1))?, _watch: None })
    }

    /// A part of a file that begins at a multiple of a page. The file itself is never changed.
    pub(crate) fn of_file(file: &File, part: Range<usize>) -> io::Result<Memory> {
        // SAFETY: as in `FileMap::open`; what is written goes to private copies.
        let map = unsafe { MmapOptions::new().offset(part.start as u64).len(part.len()).map_copy(file) }?;
        let watch = Watch::new(&map);
        Ok(Memory { map, _watch: Some(watch) })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }
}

/// Gives freed memory back to the system, after work that takes much more than it keeps. Only glibc holds it back.
pub(crate) fn give_back_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Start and end of the maps whose pages a file must give.
static WATCHED: [[AtomicUsize; 2]; MAX_WATCHED] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MAX_WATCHED];
/// What SIGBUS did before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Keeps a map in the list that the signal handler looks at.
struct Watch(Option<usize>);

impl Watch {
    fn new(bytes: &[u8]) -> Watch {
        install();
        let start = bytes.as_ptr() as usize;
        let slot = WATCHED
            .iter()
            .position(|[first, _]| first.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed).is_ok());
        if let Some(slot) = slot {
            WATCHED[slot][1].store(start + bytes.len(), Ordering::Release);
        }
        Watch(slot)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            WATCHED[slot][1].store(0, Ordering::Release);
            WATCHED[slot][0].store(0, Ordering::Release);
        }
    }
}

fn install() {
    BEFORE.get_or_init(|| {
        // SAFETY: a sigaction of zeros is a valid value of plain integers and an empty set; the handler below only makes
        // calls that are allowed in one.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_lost_page as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, &mut before);
            before
        }
    });
}

/// Ends the process if the page belongs to a watched map; else puts the handler back that was there before, under which the
/// access is tried again.
extern "C" fn on_lost_page(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid siginfo to a handler installed with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    let is_ours = WATCHED.iter().any(|[start, end]| {
        let start = start.load(Ordering::Acquire);
        start != 0 && (start..end.load(Ordering::Acquire)).contains(&address)
    });
    // SAFETY: write, _exit and sigaction may be called in a signal handler; the message is a constant.
    unsafe {
        if is_ours {
            libc::write(libc::STDERR_FILENO, LOST_FILE.as_ptr().cast(), LOST_FILE.len());
            libc::_exit(LOST_FILE_EXIT_CODE);
        }
        match BEFORE.get() {
            Some(before) => libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()),
            None => libc::_exit(LOST_FILE_EXIT_CODE),
        };
    }
}
