//! A file is written whole or not at all, and nothing is left behind.

use std::fs;
use std::path::Path;

use cargo_infergate::receipt::{Probes, Receipt, read, write_json};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::support::{golden, golden_text};

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

#[cfg(unix)]
#[test]
fn others_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("receipt.json");
    write_json(&path, &receipt()).expect("a file");
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o644);
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

#[test]
fn a_failed_rename_leaves_everything_as_it_was() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("receipt.json");
    fs::create_dir_all(path.join("in the way")).expect("a folder in the file's place");
    assert_not_written(&path);
    assert_eq!(names(folder.path()), ["receipt.json"]);
    assert_eq!(names(&path), ["in the way"]);
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
    let own = std::env::current_exe().expect("this test");
    let child = std::process::Command::new("sh")
        // Ignored, the signal for the limit becomes an error of the write.
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(own)
        .args(["--exact", "written::a_full_disk_leaves_the_old_file", "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&child.stderr));
    assert_eq!(fs::read_to_string(&path).expect("the old file"), golden_text("receipt-1.json"));
    assert_eq!(names(folder.path()), ["receipt.json"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn numbers_come_back_bit_for_bit(
        rates in prop::array::uniform3(1e-300f64..1e300),
        margin in prop::option::of(0f32..100.0),
        first_ns in 1u64..,
    ) {
        let mut receipt = receipt();
        let [memory_read_bytes_per_s, matrix_flops_per_s, scalar_ops_per_s] = rates;
        let probes = Probes { memory_read_bytes_per_s, matrix_flops_per_s, scalar_ops_per_s };
        receipt.probes.as_mut().unwrap().before = probes;
        receipt.cases[0].output.top2_margins = vec![margin];
        receipt.cases[0].processes[0].samples_ns[0] = vec![first_ns];
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("receipt.json");
        write_json(&path, &receipt).unwrap();
        prop_assert_eq!(read::<Receipt>(&path).unwrap(), receipt);
    }
}
