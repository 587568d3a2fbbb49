//! What the operating system says of a process's memory, and what is left where it does not.

use std::fs;
use std::path::Path;

use infergate_core::memory::resident::{SELF, missing, of_process, peak_rss_bytes};

#[test]
fn without_proc_what_is_missing_is_said() {
    let nowhere = Path::new("no-such-folder");
    let seen = of_process(nowhere);
    assert_eq!(seen.rss_bytes, None);
    assert_eq!((seen.anonymous_bytes, seen.mapped_bytes), (None, None));
    assert_eq!((seen.open_files, seen.threads), (None, None));
    let said = missing(&seen, peak_rss_bytes(nowhere)).join("; ");
    // This test program does not count its heap.
    for thing in
        ["the heap is not counted", "shared and anonymous pages are not told apart", "the peak of the resident set"]
    {
        assert!(said.contains(thing), "{thing}: {said}");
    }
}

#[test]
fn the_files_of_proc_are_read_in_kib() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("smaps_rollup"), "Rss:  40 kB\nPss:   30 kB\nPss_Anon: 7 kB\nAnonymous:  24 kB\n")
        .expect("a file");
    fs::write(folder.path().join("status"), "VmPeak: 90 kB\nVmHWM:\t   50 kB\nVmRSS: 36 kB\nVmSwap: 5 kB\n")
        .expect("a file");
    let seen = of_process(folder.path());
    assert_eq!(seen.rss_bytes, Some(45 << 10), "by the exact file; what was swapped out is still needed");
    let alone = tempfile::tempdir().expect("a folder");
    fs::copy(folder.path().join("status"), alone.path().join("status")).expect("a copy");
    assert_eq!(of_process(alone.path()).rss_bytes, Some(41 << 10));
    assert_eq!((seen.anonymous_bytes, seen.mapped_bytes), (Some(24 << 10), Some(16 << 10)));
    assert_eq!(peak_rss_bytes(folder.path()), Some(50 << 10));
}

#[cfg(target_os = "linux")]
#[test]
fn linux_says_everything_of_a_process() {
    let proc_self = Path::new(SELF);
    let (seen, peak) = (of_process(proc_self), peak_rss_bytes(proc_self));
    // Standard input, output and errors, and the folder that is read; tests run in threads.
    assert!(seen.open_files >= Some(4) && seen.threads >= Some(1), "{seen:?}");
    assert!(missing(&seen, peak).iter().all(|thing| thing.contains("heap")), "{seen:?} {peak:?}");
    assert!(peak >= seen.anonymous_bytes, "{seen:?} {peak:?}");
}
