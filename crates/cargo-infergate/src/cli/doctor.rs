//! `doctor`: what makes this machine noisy, what to do about it, how small a change it can see.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, Args};

use super::flags::{self, Keys, TakesKeys};
use super::outputs::{self, Written};
use super::{output, preflight};
use crate::config::Config;
use crate::machine::{self, doctor};
use infergate_judge::paired::{block_noise, smallest_called};
use infergate_judge::{days_ns, spread_days, stored_limit};
use infergate_receipts::{Baseline, CHECKUP_SCHEMA, Calibration, Checkup, PairedSight, Sight};
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
    for (name, calibration) in flags::documents::<Calibration>(&preflight::calibration_folder(config, class))? {
        let smallest = smallest_called(&calibration, config.paired.threshold);
        sight.extend(block_noise(&calibration).iter().zip(smallest).map(|(noise, ratio)| PairedSight {
            calibration: name.clone(),
            case: noise.case.to_string(),
            std: noise.std,
            ratio,
        }));
    }
    Ok(sight)
}

/// What the stored channel sees here, by the baselines of this machine class.
fn sight(config: &Config, class: &str) -> Result<Vec<Sight>> {
    let baselines = flags::documents::<Baseline>(&config.baselines.join(class))?;
    let of_case = |name: &str, baseline: &Baseline, id| {
        let days = days_ns(&baseline.sessions, id);
        Sight {
            baseline: name.to_owned(),
            case: id.to_string(),
            sessions: baseline.sessions.iter().filter(|session| session.cases.iter().any(|case| case.id == id)).count(),
            days: spread_days(&days),
            ratio: stored_limit(&days, baseline.exact.len()).map(|limit| limit.limit.exp()),
        }
    };
    let of_baseline = |(name, baseline): &(String, Baseline)| -> Vec<Sight> {
        baseline.exact.iter().map(|record| of_case(name, baseline, record.id)).collect()
    };
    Ok(baselines.iter().flat_map(of_baseline).collect())
}
