//! A file is written whole or not at all, and nothing is left behind.

use std::fs;
use std::path::Path;

use infergate_receipts::{Probes, Receipt, ensure_writable, read, write_json};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::receipt::support::{golden, golden_text};

fn receipt() -> Receipt {
    read::<Receipt>(&golden("receipt-1.json")).expect("the golden receipt")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[track_caller]
fn assert_not_written(path: &Path) {
    let error = write_json(path, &receipt()).expect_err("cannot be written");
    let error = format!("{error:#}");
    let expected = format!("{}: cannot be written; check the folder's permissions and the space left", path.display());
    assert!(error.starts_with(&expected) && !error.contains('\n'), "{error}");
}

#[test]
fn missing_folders_are_made_and_the_old_file_is_replaced() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("machine/candle.json");
    write_json(&path, &receipt()).expect("a new file");
    let mut later = receipt();
    later.seed = 7;
    write_json(&path, &later).expect("a new version");
    assert_eq!(read::<Receipt>(&path).expect("the new version"), later);
    assert_eq!(names(path.parent().expect("a parent")), ["candle.json"]);
}

/// The umask of a process belongs to all its threads: the test runs itself again below one.
#[cfg(unix)]
#[test]
fn the_umask_holds_for_a_new_file_and_an_old_one_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    const FOLDER: &str = "INFERGATE_TEST_UMASK";
    if let Some(folder) = std::env::var_os(FOLDER) {
        for name in ["new.json", "old.json"] {
            write_json(&Path::new(&folder).join(name), &receipt()).expect("a file");
        }
        return;
    }
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    for (umask, expected) in [("022", 0o644), ("002", 0o664), ("077", 0o600)] {
        let folder = TempDir::new().expect("a folder");
        let old = folder.path().join("old.json");
        fs::write(&old, "old").expect("an old file");
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).expect("its mode");
        run_again(
            "the_umask_holds_for_a_new_file_and_an_old_one_keeps_its_mode",
            &format!("umask {umask}"),
            FOLDER,
            &folder,
        );
        assert_eq!(mode(&folder.path().join("new.json")), expected, "umask {umask}");
        assert_eq!(mode(&old), 0o640, "umask {umask}");
    }
}

#[test]
fn a_folder_that_cannot_be() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "a file, not a folder").expect("a file");
    assert_not_written(&file.join("receipt.json"));
    assert_eq!(fs::read_to_string(&file).expect("the file"), "a file, not a folder");
    assert_eq!(names(folder.path()), ["file"]);
}

/// /proc takes no files, not even from root, whom a folder without write permission does not stop.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_files() {
    assert_not_written(Path::new("/proc/self/receipt.json"));
}

const NO_FILE: &str = "cannot be written, a folder, link or device of this name is there; name a regular file";

#[test]
fn a_failed_rename_leaves_everything_as_it_was() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("receipt.json");
    fs::create_dir_all(path.join("in the way")).expect("a folder in the file's place");
    assert_refused(&path, NO_FILE);
    assert_eq!(names(folder.path()), ["receipt.json"]);
    assert_eq!(names(&path), ["in the way"]);
}

#[track_caller]
fn assert_refused(path: &Path, why: &str) {
    for refused in [write_json(path, &receipt()), ensure_writable(path)] {
        let error = format!("{:#}", refused.expect_err("is no place for a file"));
        assert_eq!(error, format!("{}: {why}", path.display()));
    }
}

/// Renamed over, a device node in /dev would be a file from then on.
#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_not_replaced() {
    let folder = TempDir::new().expect("a folder");
    let (file, link, dangling) =
        (folder.path().join("file"), folder.path().join("link"), folder.path().join("dangling"));
    fs::write(&file, "kept").expect("a file");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    std::os::unix::fs::symlink(folder.path().join("nowhere"), &dangling).expect("a link");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    assert_refused(&link, NO_FILE);
    assert_refused(&dangling, NO_FILE);
    assert_refused(&pipe, NO_FILE);
    assert_refused(Path::new("/dev/null"), NO_FILE);
    for no_name in ["", "..", "/", "folder/"] {
        assert_refused(Path::new(no_name), "cannot be written, it names no file; name one");
    }
    assert_eq!(fs::read_to_string(&file).expect("the file"), "kept");
    assert_eq!(names(folder.path()), ["dangling", "file", "link", "pipe"]);
}

#[test]
fn asking_whether_a_file_can_be_written_changes_nothing() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("old.json");
    fs::write(&file, "old").expect("a file");
    ensure_writable(&file).expect("a file that can be replaced");
    ensure_writable(&folder.path().join("new/and/newer/file.json")).expect("folders that can be made");
    ensure_writable(Path::new("relative/file.json")).expect("a folder that can be made here");
    assert_eq!(fs::read_to_string(&file).expect("the file"), "old");
    assert_eq!(names(folder.path()), ["old.json"]);
    for below_a_file in [file.join("it.json"), file.join("deep/it.json")] {
        let error = format!("{:#}", ensure_writable(&below_a_file).expect_err("below a file"));
        assert!(error.contains("it.json: cannot be written"), "{error}");
    }
    let long = folder.path().join("x".repeat(300));
    assert!(ensure_writable(&long).is_err(), "a name that no file can have");
}

/// A disk that takes no more bytes, by the limit on file size: the test runs itself again below that limit.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_file() {
    const FOLDER: &str = "INFERGATE_TEST_FULL_DISK";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        assert_not_written(&folder.join("receipt.json"));
        assert_not_written(&folder.join("new.json"));
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("receipt.json");
    fs::copy(golden("receipt-1.json"), &path).expect("an old file");
    // Ignored, the signal for the limit becomes an error of the write.
    run_again("a_full_disk_leaves_the_old_file", "trap '' XFSZ; ulimit -f 1", FOLDER, &folder);
    assert_eq!(fs::read_to_string(&path).expect("the old file"), golden_text("receipt-1.json"));
    assert_eq!(names(folder.path()), ["receipt.json"]);
}

/// Runs the test `name` of this file again, below a shell's `limit`, with `folder` in the variable `variable`.
#[cfg(unix)]
#[track_caller]
fn run_again(name: &str, limit: &str, variable: &str, folder: &TempDir) {
    let child = std::process::Command::new("sh")
        .args(["-c", &format!("{limit}; exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().expect("this test"))
        .args(["--exact", &format!("receipt::written::{name}"), "--nocapture"])
        .env(variable, folder.path())
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&child.stderr));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn numbers_come_back_bit_for_bit(
        rates in prop::array::uniform2(1e-300f64..1e24),
        margin in prop::option::of(0f32..100.0),
        first_ns in 1u64..=1_000_000_000_000_000,
    ) {
        let mut receipt = receipt();
        let [memory_read_bytes_per_s, fma_flops_per_s] = rates;
        let probes = Probes { memory_read_bytes_per_s, fma_flops_per_s };
        receipt.probes.as_mut().unwrap().before = probes;
        receipt.cases[0].output.top2_margins = vec![margin];
        receipt.cases[0].processes[0].samples_ns[0] = vec![first_ns];
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("receipt.json");
        write_json(&path, &receipt).unwrap();
        prop_assert_eq!(read::<Receipt>(&path).unwrap(), receipt);
    }
}
