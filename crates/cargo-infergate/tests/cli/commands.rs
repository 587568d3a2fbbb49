//! What the commands have in common.

use crate::sandbox::{Sandbox, stdout};

#[test]
fn the_version_says_how_the_command_was_built() {
    let said = stdout(&Sandbox::new().run(&["--version"]).success());
    let build = infergate_core::build_info::build();
    let (first, second) = said.split_once('\n').expect("two lines");
    assert_eq!(first, format!("cargo infergate {}", env!("CARGO_PKG_VERSION")));
    let flags = if build.flags.is_empty() { "none" } else { &build.flags };
    assert_eq!(second.trim_end(), format!("{}, {}, flags: {flags}", build.rustc, build.target));
    assert!(build.rustc.starts_with("rustc ") && build.target.contains('-'), "{said}");
    let short = stdout(&Sandbox::new().run(&["-V"]).success());
    assert_eq!(short.trim_end(), first);
}

#[test]
fn a_flag_wins_over_the_environment_and_the_environment_over_the_file() {
    let sandbox = Sandbox::new();
    sandbox.baseline(1);
    sandbox.write("infergate.toml", "baselines = 'nowhere'\n");
    let has_baseline = |environment: Option<&str>, flags: &[&str]| {
        let mut process = sandbox.process(&["doctor"]);
        process.args(flags).envs(environment.map(|folder| ("INFERGATE_BASELINES", folder)));
        stdout(&assert_cmd::Command::from_std(process).assert().success()).contains("7 more days needed")
    };
    assert!(!has_baseline(None, &[]));
    assert!(has_baseline(Some("baselines"), &[]));
    assert!(!has_baseline(Some("baselines"), &["--baselines", "elsewhere"]));
}
