//! `doctor`: what makes this machine noisy, what to do about it, how small a change it can see.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Arg, Args};

use super::flags::{self, Keys, TakesKeys};
use super::outputs::{self, Written};
use super::{output, preflight};
use crate::config::Config;
use crate::machine::{self, doctor};
use infergate_judge::paired::{block_noise, smallest_called};
use infergate_judge::{days_ns, spread_days, stored_limit};
use infergate_receipts::{Baseline, CHECKUP_SCHEMA, Calibration, Checkup, PairedSight, Sight, read};
use infergate_report::checkup;

/// Say what makes this machine noisy
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask doctor\n  cargo xtask doctor --json doctor.json")]
pub struct Doctor {
    #[command(flatten)]
    keys: Keys<Self>,
    /// Write the findings here; - is stdout, which then has nothing else
    #[arg(long)]
    json: Option<PathBuf>,
}

impl TakesKeys for Doctor {
    fn keys() -> Vec<Arg> {
        flags::some(&["baselines", "threshold"])
    }
}

/// Looks, prints. Noise is advice, not a failure.
pub fn run(options: &Doctor) -> Result<i32> {
    outputs::begin(&[], None, options.json.as_deref())?;
    let config = options.keys.config()?;
    let machine = machine::detect();
    let sight = sight(&config, &machine.class)?;
    let paired = paired_sight(&config, &machine.class)?;
    let checkup = Checkup { schema: CHECKUP_SCHEMA, machine, findings: doctor::examine(), sight, paired };
    output::report(&checkup::text(&checkup));
    let mut written = Written::default();
    written.json(options.json.as_deref(), &checkup);
    Ok(written.code(0))
}

/// What the paired channel sees here, by the calibrations of this machine class.
fn paired_sight(config: &Config, class: &str) -> Result<Vec<PairedSight>> {
    let mut sight = Vec::new();
    for path in flags::json_files(&preflight::calibration_folder(config, class))? {
        let calibration = read::<Calibration>(&path)?;
        let smallest = smallest_called(&calibration, config.paired.threshold);
        sight.extend(block_noise(&calibration).iter().zip(smallest).map(|(noise, ratio)| PairedSight {
            calibration: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            case: noise.case.to_string(),
            std: noise.std,
            ratio,
        }));
    }
    Ok(sight)
}

fn sight(config: &Config, class: &str) -> Result<Vec<Sight>> {
    let mut sight = Vec::new();
    for path in flags::json_files(&config.baselines.join(class))? {
        sight.extend(sight_of(&read::<Baseline>(&path)?, &path));
    }
    Ok(sight)
}

fn sight_of(baseline: &Baseline, path: &Path) -> Vec<Sight> {
    let of_case = |id| {
        let days = days_ns(&baseline.sessions, id);
        let limit = stored_limit(&days, baseline.exact.len());
        Sight {
            baseline: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            case: id.to_string(),
            sessions: baseline.sessions.iter().filter(|session| session.cases.iter().any(|case| case.id == id)).count(),
            days: spread_days(&days),
            ratio: limit.map(|limit| limit.limit.exp()),
        }
    };
    baseline.exact.iter().map(|record| of_case(record.id)).collect()
}
