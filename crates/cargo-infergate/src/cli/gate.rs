//! `gate`: measure, compare with the committed baseline, decide.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};

use super::outputs::Written;
use super::{bench, early, flags, load_gate, output, paired_gate, report, turn};
use crate::config::Config;
use crate::gate;
use crate::receipt::{Baseline, Receipt, read};
use crate::report::inputs::Inputs;
use crate::report::terminal;

/// Its flags.
pub fn command() -> Command {
    Command::new("gate")
        .about("Measure, compare with a baseline or revision, decide")
        .args(paired_gate::args())
        .args(flags::measure())
        .args(flags::judge())
        .args(flags::memory())
        .arg(flags::out())
        .arg(receipt())
        .arg(flags::json("Write the verdict here"))
        .arg(turn::arg())
        .arg(report::folder())
        .after_help(
            "Examples:\n  cargo xtask gate\n  cargo xtask gate --against origin/main\n  \
             cargo xtask gate --against HEAD~1 --budget 5m --power\n  cargo xtask gate --model model.gguf --runs 3 --json verdict.json\n  \
             cargo xtask gate --receipt target/infergate/receipt.json\n  \
             cargo xtask gate --targets 'prefill/p128 ttft_ms < 2500' --targets 'decode/* tokens_per_s > 20'",
        )
}

fn receipt() -> Arg {
    Arg::new("receipt")
        .long("receipt")
        .value_name("FILE")
        .help("Judge this receipt, of a suite or of a load run, instead of measuring")
        .value_parser(value_parser!(PathBuf))
        .conflicts_with_all(flags::measure_ids().chain(["against", "base-bin"]))
}

/// Measures or reads, judges, prints.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    let config = flags::config(matches)?;
    config.policy.validate()?;
    if paired_gate::is_asked(matches) {
        return paired_gate::run(matches, &config);
    }
    let json = flags::path(matches, "json");
    let folder = report::begin(matches)?;
    let given = flags::path(matches, "receipt");
    if let Some(path) = &given
        && load_gate::is_load(path)?
    {
        return load_gate::gate(matches, &config, path, folder.as_deref());
    }
    let (receipt, out) = match given {
        Some(path) => (read::<Receipt>(&path)?, None),
        None => {
            early::targets(&config, matches.contains_id("worker"))?;
            early::baselines(&config)?;
            let measured = bench::measure(&config, matches, config.measured.memory.runs)?;
            (measured.receipt, Some(measured.out))
        }
    };
    let baseline = find_baseline(&config, &receipt)?;
    let verdict = gate::judge(&receipt, baseline.as_ref(), &config.policy)?;
    output::decided(&terminal::verdict(&verdict, &terminal::subject(&receipt)));
    let (code, mut written) = (verdict.exit_code, Written::default());
    if let Some(out) = out {
        bench::keep(&out, &receipt, &mut written);
    }
    let base = baseline.as_ref().and_then(|baseline| gate::newest_session(baseline).ok());
    let inputs = Inputs { base, head: Some(receipt), verdict: Some(verdict), ..report::inputs() };
    report::verdict(&inputs, json.as_deref(), &mut written);
    if let Some(folder) = folder {
        written.note(report::usual(&folder, &inputs));
    }
    Ok(written.code(code))
}

/// The baseline of this machine class; else one of another class, against which outputs still count.
fn find_baseline(config: &Config, receipt: &Receipt) -> Result<Option<Baseline>> {
    let own = config.baselines.join(Baseline::file_name(&receipt.machine.class, &receipt.engine));
    if flags::is_there(&own) {
        return read::<Baseline>(&own).map(Some);
    }
    let Some(name) = own.file_name() else { return Ok(None) };
    let mut others: Vec<PathBuf> = flags::entries(&config.baselines)?.iter().map(|class| class.join(name)).collect();
    others.retain(|path| flags::is_there(path));
    others.first().map(|path| read::<Baseline>(path)).transpose()
}
