//! `-h` shows the flags that people use, `--help` all of them.

use crate::sandbox::{Sandbox, stdout};

const LONG: [&str; 9] = ["gate", "bench", "compare", "memory", "load", "bless", "bisect", "calibrate", "doctor"];

fn help(arguments: &[&str]) -> String {
    stdout(&Sandbox::new().run(arguments).success())
}

/// Lines that begin with a flag.
fn flags(help: &str) -> usize {
    let begins = |line: &str| ["--", "-q, ", "-h, "].iter().any(|dashes| line.starts_with(dashes));
    help.lines().filter(|line| begins(line.trim_start())).count()
}

#[test]
fn a_short_help_is_short_and_says_where_the_rest_is() {
    for command in LONG {
        let (short, long) = (help(&[command, "-h"]), help(&[command, "--help"]));
        assert!(short.lines().count() <= 60, "{short}");
        assert!(flags(&short) <= 18 && flags(&short) < flags(&long), "{short}");
        let rest = format!("The rest of the flags: cargo infergate {command} --help");
        assert_eq!(short.lines().last(), Some(rest.as_str()), "{short}");
        assert!(!long.contains("The rest of the flags"), "{long}");
        assert!(short.contains(&format!("Examples:\n  cargo infergate {command}")), "{short}");
    }
}

#[test]
fn exit_codes_stand_one_a_line() {
    for arguments in [&["--help"][..], &["-h"], &["gate", "--help"], &["load", "--help"]] {
        let text = help(arguments);
        let (_, codes) = text.split_once("Exit codes:\n").unwrap_or_else(|| panic!("{text}"));
        let begins: Vec<&str> = codes.lines().take(5).map(|line| &line[..5]).collect();
        assert_eq!(begins, ["  0  ", "  1  ", "  2  ", "  3  ", "  4  "], "{text}");
    }
}

#[test]
fn a_command_says_what_it_does_in_a_few_words() {
    let all = cargo_infergate::cli::command("cargo infergate");
    for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let words = about.split_whitespace().count();
        assert!((6..=8).contains(&words), "{}: {about}", command.get_name());
    }
}
