//! `report`: files that were measured or judged before, as pages, pictures and other programs' formats. What was not judged yet is
//! judged here, by the gate's own functions.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueHint};

use super::measuring::find_calibration;
use super::{flags, outputs, pages};
use crate::config::Config;
use infergate_core::config::Config as Measured;
use infergate_core::{prompt, sha256};
use infergate_judge::memory;
use infergate_judge::paired::{Policy, false_failure_rate, judge, missing_cases};
use infergate_receipts::{
    BASELINE_SCHEMA, Evidence, LOAD_SCHEMA, LoadReceipt, MEMORY_SCHEMA, Outcome, PAIRED_SCHEMA, PairedReceipt,
    RECEIPT_SCHEMA, Receipt, ReceiptOrBaseline, VERDICT_SCHEMA, Verdict, read, read_receipt_or_baseline, read_uploaded,
    schema_of,
};
use infergate_report::export::EXPORTERS;
use infergate_report::inputs::Inputs;
use infergate_report::words::provenance::{build, is_of_errors};

/// Make pages, tables and pictures of receipts
#[derive(Args)]
#[command(args = flags::flags_named(&["targets", "prompt"]), after_help = help_footer())]
pub struct Report {
    /// Receipt, paired receipt, memory receipt, load receipt, verdict, or baseline of a suite; of two receipts the first is the earlier
    /// run
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Folder the report is written to
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: PathBuf,
    /// Formats, by comma [default: those that people read and that have what they need]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    format: Vec<String>,
    /// The files come from a pull request's own run: judge them by the settings here, and say so in the comment
    #[arg(long, requires_all = ["head", "base"])]
    pull_request: bool,
    /// The pull request's commit; a receipt of another one is refused
    #[arg(long, value_name = "COMMIT", requires = "pull_request")]
    head: Option<String>,
    /// The commit where the pull request left its target; a receipt of another one is refused
    #[arg(long, value_name = "COMMIT", requires = "pull_request")]
    base: Option<String>,
    /// Show how the single request's prompt begins, drawn again from the seed or the text of --prompt: no receipt holds it
    #[arg(long)]
    show_prompt: bool,
}

/// The text below the flags: formats and examples.
fn help_footer() -> String {
    let formats: Vec<String> =
        EXPORTERS.iter().map(|exporter| format!("  {:17} {}", exporter.name, exporter.about)).collect();
    format!(
        "Formats:\n{}\n\nExamples:\n  cargo xtask report target/infergate/receipt.json --out report\n  \
         cargo xtask report paired.json verdict.json --out report --format comment,html\n  \
         cargo xtask report before.json after.json --out report\n  \
         cargo xtask report target/infergate/load.json --out report",
        formats.join("\n")
    )
}

pub fn run(options: &Report, config: &Config) -> Result<i32> {
    let Report { files, out, format, pull_request, head, base, show_prompt } = options;
    let mut inputs = inputs(files, config, *pull_request, [base, head])?;
    if *show_prompt {
        inputs.prompt_text = Some(prompt_text(&inputs, &config.measured)?);
    }
    outputs::is_written(pages::write(out, &inputs, format, files));
    Ok(0)
}

/// The text that the run's prompts were cut from.
///
/// # Errors
/// No run; another text than its own.
fn prompt_text(inputs: &Inputs, config: &Measured) -> Result<String> {
    let run = inputs.head.as_ref().context("--show-prompt: these files hold no single request; give a receipt")?;
    let own = config.own_prompt_text()?;
    ensure!(
        own.as_deref().map(sha256::of) == run.prompt_text_sha256,
        "--show-prompt: the run had another prompt text; name its file as --prompt, or set no prompt if it had the usual one"
    );
    Ok(own.unwrap_or_else(|| prompt::TEXT.to_owned()))
}

/// Reads the files, and judges what has no verdict yet. The author of a `pull_request`, whose base and head are `commits`, wrote its files.
///
/// # Errors
/// A file that cannot be read or is of another format; more files of a kind than a report has room for; for a pull request,
/// anything but a paired receipt of its commits.
fn inputs(files: &[PathBuf], config: &Config, pull_request: bool, commits: [&Option<String>; 2]) -> Result<Inputs> {
    let mut inputs = Inputs { pull_request, ..pages::inputs() };
    let mut runs: Vec<ReceiptOrBaseline> = Vec::new();
    for path in files {
        if pull_request {
            let receipt = read_uploaded(path)?;
            for ((name, side), commit) in [("base", &receipt.base), ("head", &receipt.head)].into_iter().zip(commits) {
                ensure!(
                    side.build.commit == *commit && side.build.dirty != Some(true),
                    "{}: its {name} is {}, and the pull request's is {}; gate that commit, with every change committed",
                    path.display(),
                    build(&side.build),
                    commit.as_deref().unwrap_or_default()
                );
            }
            once(path, &mut inputs.paired, receipt)?;
            continue;
        }
        match schema_of(path)?.as_str() {
            RECEIPT_SCHEMA | BASELINE_SCHEMA => runs.push(read_receipt_or_baseline(path)?),
            PAIRED_SCHEMA => once(path, &mut inputs.paired, read(path)?)?,
            MEMORY_SCHEMA => once(path, &mut inputs.memory, read(path)?)?,
            VERDICT_SCHEMA => once(path, &mut inputs.verdict, read(path)?)?,
            LOAD_SCHEMA => once(path, &mut inputs.load, read::<LoadReceipt>(path)?.into())?,
            schema => bail!(
                "{}: its schema is {schema}; a report takes receipts, verdicts and baselines of a suite; give another file, \
                 update infergate, or measure again",
                path.display()
            ),
        }
    }
    ensure!(
        runs.len() <= 2,
        "{} receipts and baselines were given; a report has room for two, the earlier run first",
        runs.len()
    );
    if inputs.verdict.is_none() {
        inputs.verdict = judged(&runs, &inputs, config)?;
    }
    let mut runs = runs.iter().rev().map(as_run).collect::<Result<Vec<Receipt>>>()?.into_iter();
    inputs.head = runs.next();
    inputs.base = runs.next();
    Ok(inputs)
}

fn once<T>(path: &Path, place: &mut Option<T>, document: T) -> Result<()> {
    ensure!(place.is_none(), "{}: a report has room for one file of this kind; make a report of each", path.display());
    *place = Some(document);
    Ok(())
}

fn as_run(run: &ReceiptOrBaseline) -> Result<Receipt> {
    match run {
        ReceiptOrBaseline::Receipt(receipt) => Ok(receipt.as_ref().clone()),
        ReceiptOrBaseline::Baseline(baseline) => infergate_judge::newest_session(baseline),
    }
}

/// The verdict on files that came without one. `None` if there is nothing to decide.
fn judged(runs: &[ReceiptOrBaseline], inputs: &Inputs, config: &Config) -> Result<Option<Verdict>> {
    if let Some(paired) = &inputs.paired {
        return Ok(Some(if inputs.pull_request {
            judge_pull_request(paired, config)?
        } else {
            judge(paired, &config.policy)
        }));
    }
    let mut rows = Vec::new();
    match runs {
        [base, head] if infergate_judge::share_a_case(base, &as_run(head)?) => {
            return infergate_judge::compare(base, &as_run(head)?, &config.policy).map(Some);
        }
        [.., run] => {
            // Without a base only absolute limits decide: targets, and leaks.
            let verdict = infergate_judge::judge(&as_run(run)?, None, &config.policy)?;
            let absolute = |evidence: &Evidence| matches!(evidence, Evidence::Target(_) | Evidence::Memory(_));
            rows.extend(verdict.rows.into_iter().filter(|row| absolute(&row.evidence)));
        }
        [] => {}
    }
    if let Some(receipt) = &inputs.memory {
        rows.extend(memory::judge(&receipt.memory));
    }
    Ok((!rows.is_empty()).then(|| Verdict::of(rows, Vec::new())))
}

/// Judges the receipt of a pull request's own run by the settings and the calibration here, not by the limits and the false-failure rate
/// that it holds. A change that is declared as intended here already does not count as intended again. If cases of the settings are
/// missing, it does not pass.
fn judge_pull_request(receipt: &PairedReceipt, config: &Config) -> Result<Verdict> {
    let missing = missing_cases(receipt, &config.measured.cases);
    // If cases are missing, inconclusive rows do not pass either.
    let inconclusive_passes = config.policy.inconclusive_passes && missing.is_none();
    let policy = Policy { accepted_before: config.tables.accept.clone(), inconclusive_passes, ..config.policy.clone() };
    let mut receipt = config.limits().set_in(receipt.clone());
    let notes = receipt.notes.len();
    receipt.notes.retain(|note| !is_of_errors(note));
    if receipt.notes.len() < notes {
        receipt.notes.push(false_failure_rate(find_calibration(config, &receipt)?.as_ref(), &receipt));
    }
    let mut verdict = judge(&receipt, &policy);
    let Some(missing) = missing else { return Ok(verdict) };
    // The headline of what no row decides is the last note.
    verdict.notes.push(missing);
    Ok(verdict.at_best(Outcome::NotComparable))
}
