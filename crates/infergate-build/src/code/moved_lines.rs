//! Where lines of base's sources stand in head's.

use std::collections::HashMap;
use std::path::Path;

use infergate_core::text_file::read_text;
use similar::TextDiff;

/// No source is longer.
const MAX_SOURCE_BYTES: u64 = 64 << 20;

/// The numbers of lines of base's `source` that did not change, and theirs in head. It is named by its path from the folder where each side's
/// compiler ran; one of the checkout outside that folder has an absolute path. `None` if one of both cannot be read.
pub fn unchanged_lines([base, head]: [&Path; 2], source: &str) -> Option<HashMap<usize, usize>> {
    let in_base = base.join(source);
    let mut parents = base.ancestors().zip(head.ancestors());
    let in_head = parents.find_map(|(base, head)| Some(head.join(in_base.strip_prefix(base).ok()?)))?;
    let [base, head] = [in_base, in_head].map(|path| read_text(&path, MAX_SOURCE_BYTES));
    let (base, head) = (base.ok()?, head.ok()?);
    let difference = TextDiff::from_lines(&base, &head);
    let lines = difference.iter_all_changes();
    Some(lines.filter_map(|line| Some((line.old_index()? + 1, line.new_index()? + 1))).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::unchanged_lines;

    #[test]
    fn lines_that_did_not_change_are_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [base, head] = [("base", "one\ntwo\nthree\n"), ("head", "new\none\n2\nthree\n")].map(|(side, text)| {
            let workspace = folder.path().join(side).join("benches");
            fs::create_dir_all(&workspace).expect("a folder");
            for source in ["bench.rs", "../lib.rs"] {
                fs::write(workspace.join(source), text).expect("a source");
            }
            workspace
        });
        let outside = folder.path().join("base/lib.rs");
        for source in ["bench.rs", outside.to_str().expect("UTF-8")] {
            let lines = unchanged_lines([&base, &head], source).expect("sources");
            assert_eq!([1, 2, 3].map(|line| lines.get(&line).copied()), [Some(2), None, Some(4)], "{source}");
        }
        assert_eq!(unchanged_lines([&base, &head], "missing.rs"), None);
    }
}
