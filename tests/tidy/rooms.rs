//! The arrows of ARCHITECTURE.md: which room of a package uses which other one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Of each room of a package, the others that it names.
type Arrows = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The blocks of ARCHITECTURE.md that begin with a package's folder, `src/:`, and what stands below it.
fn written() -> BTreeMap<String, Arrows> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let blocks = text.split("```text\n").skip(1).filter_map(|block| block.split("\n```").next());
    let packages = blocks.filter_map(|block| block.split_once("/:\n"));
    let arrows = |lines: &str| {
        let arrow = |line: &str| {
            let (room, others) = line.split_once(" -> ").expect("room -> others");
            (room.trim().to_owned(), others.split(',').map(|other| other.trim().to_owned()).collect())
        };
        lines.lines().map(arrow).collect()
    };
    packages.map(|(folder, lines)| (folder.to_owned(), arrows(lines))).collect()
}

/// The rooms below `folder`: each Rust file or folder directly in it.
fn found(folder: &Path) -> Arrows {
    let mut arrows = Arrows::new();
    let mut waiting: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let place = path.strip_prefix(folder).unwrap();
        let room = Path::new(place.iter().next().unwrap()).file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_some_and(|kind| kind == "rs") && !["lib", "main"].contains(&room.as_str()) {
            let mut text = fs::read_to_string(&path).unwrap();
            // Above a file that lies directly in the folder is the crate's root.
            if path.parent() == Some(folder) {
                text = text.replace("super::", "crate::");
            }
            let others = others(&text).into_iter().filter(|other| *other != room);
            arrows.entry(room.clone()).or_default().extend(others);
        }
    }
    let rooms: BTreeSet<String> = arrows.keys().cloned().collect();
    // Macros and the names that a crate's root has are no rooms.
    arrows.values_mut().for_each(|others| others.retain(|other| rooms.contains(other)));
    arrows.retain(|_, others| !others.is_empty());
    arrows
}

/// What follows `crate::` in the code of a file, one name or several in braces.
fn others(text: &str) -> Vec<String> {
    let code: String = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let after = code.split("crate::").skip(1).collect::<Vec<_>>();
    let name = |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut names = Vec::new();
    for text in after {
        match text.strip_prefix('{') {
            // Of a name with more behind it, the first.
            Some(list) => names.extend(list.split('}').next().unwrap_or_default().split(',').map(name)),
            None => names.push(name(text)),
        }
    }
    names
}

#[test]
fn each_arrow_between_rooms_is_written_down_and_none_other() {
    let packages = written();
    assert!(packages.len() >= 5, "the blocks of arrows: {:?}", packages.keys());
    for (folder, written) in packages {
        let found = found(&root().join(&folder));
        for room in written.keys().chain(found.keys()) {
            assert_eq!(found.get(room), written.get(room), "{folder}: {room} uses, and ARCHITECTURE.md says");
        }
    }
}

#[test]
fn no_two_rooms_use_each_other_whatever_stands_between_them() {
    for (folder, arrows) in written() {
        let mut left = arrows;
        // A room that uses none of those that are left is no part of a circle.
        loop {
            let rooms: BTreeSet<String> = left.keys().cloned().collect();
            let before = left.len();
            left.retain(|_, others| others.iter().any(|other| rooms.contains(other)));
            if left.len() == before {
                break;
            }
        }
        assert!(left.is_empty(), "{folder}: rooms in a circle, or above one: {left:?}");
    }
}
