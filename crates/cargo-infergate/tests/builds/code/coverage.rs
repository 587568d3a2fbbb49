//! Which of the functions that changed a process runs, seen from outside.

use std::fs;
use std::process::{Command, Output};

use super::{Folder, PROGRAM, difference, replaced};

pub struct Seen {
    /// What the program printed, and how it ended.
    output: Output,
    /// Whether a function that changed began, by name.
    pub ran: Vec<String>,
    /// The lines that say more.
    said: String,
}

/// Runs head with `arguments`, watched for what differs from [`PROGRAM`].
fn seen(source: &str, arguments: &[&str]) -> Seen {
    seen_of(PROGRAM, source, arguments)
}

/// The same for another base.
pub fn seen_of(base: &str, source: &str, arguments: &[&str]) -> Seen {
    let folder = Folder::new();
    let base = folder.build("base", base, &[]);
    let head = folder.build("head", source, &[]);
    let changed = difference(&base, &head);
    let places = changed.functions.iter().filter_map(|function| Some(format!("{:x}\n", function.head?)));
    let asked = folder.write("functions", &places.collect::<String>());
    let seen = folder.0.path().join("seen");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-infergate"));
    command.arg("__coverage").arg(asked).arg(&seen).arg("--");
    let output = command.arg(folder.0.path().join("head/program")).args(arguments).output().expect("the command");
    let said = fs::read_to_string(seen).expect("what was seen");
    let began = |at: Option<u64>| at.is_some_and(|at| said.lines().any(|line| line == format!("{at:x}")));
    let ran = changed.functions.iter().filter(|function| began(function.head)).map(|function| function.name.clone());
    Seen { output, ran: ran.collect(), said: said.clone() }
}

fn printed(source: &str, arguments: &[&str]) -> Output {
    let folder = Folder::new();
    folder.build("alone", source, &[]);
    Command::new(folder.0.path().join("alone/program")).args(arguments).output().expect("the program")
}

#[test]
fn a_function_is_seen_if_and_only_if_it_runs() {
    // A virtual function of what is made with an argument alone.
    let tripled = replaced("self.0 * 3", "self.0 * 5");
    let none = seen(&tripled, &[]);
    assert_eq!(none.ran, Vec::<String>::new(), "{}", none.said);
    assert!(none.said.starts_with("watched "), "{}", none.said);
    assert_eq!(seen(&tripled, &["a"]).ran, ["<program::Short as program::Going>::go"]);
    let wider = replaced("as u64 * 5", "as u64 * 4");
    assert_eq!(seen(&wider, &[]).ran, ["program::wide"]);
}

#[test]
fn a_watched_program_does_what_it_does_alone() {
    let source = replaced("number * 3 + 7", "number * 3 + 8");
    for arguments in [&[][..], &["a"]] {
        let (watched, alone) = (seen(&source, arguments), printed(&source, arguments));
        assert_eq!(watched.ran, ["program::scaled"]);
        assert_eq!((watched.output.stdout, watched.output.status.code()), (alone.stdout, alone.status.code()));
    }
    // It panics, and the exit code says so.
    let broken = replaced("1 => \"the second of all\",", "1 => panic!(),");
    assert_eq!(seen(&broken, &[]).output.status.code(), Some(101));
}

/// Threads run at once through a function that is stopped at, children are copies, and a process may start itself again.
#[test]
fn threads_copies_and_second_starts_are_seen() {
    let work = "// unless\n    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(|| \
                (0..1000).map(|at| black_box(scaled(black_box(at)))).sum::<u64>())).collect();\n    \
                for thread in threads { black_box(thread.join().unwrap()); }\n";
    let threads = replaced("number * 3 + 7", "number * 3 + 8").replace("// unless", work);
    let found = seen(&threads, &[]);
    assert!(found.ran.contains(&"program::scaled".to_owned()), "{:?}", found.ran);
    assert!(found.output.status.success(), "{:?}", found.output);
    let again = "// unless\n    if number == 1 { let at = std::env::current_exe().unwrap();\n        \
                 use std::os::unix::process::CommandExt;\n        \
                 panic!(\"{}\", std::process::Command::new(at).arg(\"a\").exec()); }\n";
    // The tracer answers the first signal before it sees the last one.
    let signals = "println!(\"{}\", made(number).go());\n    extern \"C\" { fn kill(process: i32, signal: i32) -> i32; fn getppid() -> i32; fn raise(signal: i32) -> i32; }\n    \
                   let (ask, ignored) = (10, 28);\n    unsafe { kill(getppid(), ask); raise(ignored); raise(ignored); }\n    let place";
    let again = replaced("self.0 * 3", "self.0 * 5").replace("// unless", again).replace("let place", signals);
    let again = seen(&again, &[]);
    assert!(again.ran.contains(&"<program::Short as program::Going>::go".to_owned()), "{:?}", again.ran);
    assert_eq!(again.said.matches("\nagain\n").count(), 1, "{}", again.said);
    let (first, second) = again.said.split_once("\nagain\n").expect("it is watched again");
    assert!(second.lines().any(|line| Some(line) == first.lines().last()), "it is seen again: {}", again.said);
    let other = "// unless\n    black_box(std::process::Command::new(\"true\").status().unwrap());\n";
    let other = seen(&replaced("as u64 * 9", "as u64 * 8").replace("// unless", other), &[]);
    assert!(other.said.contains("started "), "{}", other.said);
}
