//! Builds that do the same and are laid out differently: the linker shuffles the sections that hold functions and constants,
//! by a seed. What a change of the code does to the layout of everything else by accident is done here on purpose.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::bench_target::{self, Built};
use super::output;
use crate::config::BenchTarget;
use infergate::worker::WorkerFile;

/// `plain`, the bench target as cargo builds it, and `shuffled` further builds of it; copies in `folder` under names of equal
/// length. Where the linker cannot shuffle, `plain` alone, and a sentence that says so.
///
/// # Errors
/// When cargo does not start, or a copy cannot be written.
pub fn build(target: &BenchTarget, plain: &Built, shuffled: usize, folder: &Path) -> Result<Vec<WorkerFile>> {
    let mut builds = vec![keep(plain, 0, folder)?];
    for seed in 1..=shuffled {
        output::say(&format!("linking layout {seed} of {shuffled}"));
        let arguments: Vec<String> = [".text*", ".rodata*"]
            .iter()
            .map(|sections| format!("-Clink-arg=-Wl,--shuffle-sections={sections}={seed}"))
            .collect();
        match bench_target::build_with(target, &arguments)? {
            Some(built) => builds.push(keep(&built, seed, folder)?),
            None => {
                output::say(
                    "this linker does not shuffle sections (lld does, and on x86-64 Linux rustc brings it): luck of layout is \
                     not measured; give builds of your own with --other-worker",
                );
                builds.truncate(1);
                break;
            }
        }
    }
    Ok(builds)
}

fn keep(built: &Built, number: usize, folder: &Path) -> Result<WorkerFile> {
    let name = format!("layout-{number:03}{}", std::env::consts::EXE_SUFFIX);
    let to = folder.join(name);
    let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(&built.path, &to));
    copied.with_context(|| format!("{}: this copy of the worker cannot be written", to.display()))?;
    Ok(WorkerFile::open(&to)?.of_package(built.package.clone()))
}
