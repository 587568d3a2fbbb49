//! Going on with a run that was cut short.

use anyhow::{Result, bail, ensure};

use super::{PairedRequest, PairedRun};
use crate::gate::paired::{mean_test, median_threshold};
use crate::receipt::{LoadCase, Machine, MeanTest, Note, PairedCase, PairedReceipt, SideRecord};

impl PairedRun<'_> {
    /// Goes on with `earlier`, which was cut short: its plan, and so its limits, and its blocks hold, and those to come follow them as
    /// if nothing had been between. To be called after the builds were chosen, and before the first block.
    ///
    /// # Errors
    /// What differs, in one line: the machine, a build, what is measured, or a limit that was asked for.
    pub fn go_on(&mut self, earlier: PairedReceipt) -> Result<()> {
        if let Some(what) = difference(&earlier, &self.receipt, self.request) {
            bail!("--resume: {what}; measure anew without it");
        }
        for (at, block) in earlier.blocks.iter().enumerate() {
            let drawn = self.order.next();
            ensure!(
                drawn == (block.started_first, block.ran_first),
                "--resume: block {} was drawn by another version of infergate; measure anew without it",
                at + 1
            );
            block.cases.iter().for_each(|case| self.pairs.note(case));
        }
        // A case whose samples are several iterations stays one.
        let turns = |case| earlier.cases.iter().all(|plan| plan.id != case || plan.iterations_per_sample == 1);
        self.turn_tokens.retain(|case, _| turns(*case));
        let mut resumed = earlier.resumed.clone();
        resumed.push(earlier.blocks.len());
        // What is declared, who judges, and what has to be known beside, is this run's to say; its pilot compared lengths and batches. What
        // broke before stays, since a race shows now and then, but for what this run allows.
        let PairedReceipt { code, terms, notes, mut broken, other_lengths, .. } = self.receipt.clone();
        let is_said =
            |why: &String| self.receipt.broken.contains(why) || self.receipt.notes.contains(&Note::from(why.clone()));
        broken.extend(earlier.broken.iter().filter(|why| !is_said(why)).cloned());
        let kept = PairedReceipt { partial: false, out_of_time: false, memory: None, ..earlier };
        self.receipt = PairedReceipt { resumed, code, terms, notes, broken, other_lengths, ..kept };
        Ok(())
    }
}

/// What is not the same in both, so that blocks of one say nothing of the other.
fn difference(was: &PairedReceipt, is: &PairedReceipt, request: &PairedRequest) -> Option<String> {
    let anchor = |receipt: &PairedReceipt| receipt.anchor.as_ref().map(|anchor| anchor.limit);
    let without = |receipt: &PairedReceipt| receipt.anchor.as_ref().map(|anchor| anchor.without.clone());
    let anchors = |receipt: &PairedReceipt| receipt.anchor.as_ref().and_then(|anchor| anchor.side.clone());
    let suite = |receipt: &PairedReceipt| receipt.cases.iter().map(|case| case.id).collect::<Vec<_>>();
    // How long its windows are was this pilot's choice, and that of the earlier one holds.
    let under = |load: &LoadCase| (load.scenario.clone(), load.users, load.metric);
    let load =
        |receipt: &PairedReceipt| receipt.cases.iter().map(|case| case.load.as_ref().map(under)).collect::<Vec<_>>();
    let text = |what: &str| Some(what.to_owned());
    if let Some(broken) = was.invalid.first() {
        return Some(format!("the run broke an invariant ({broken})"));
    }
    if was.tool != is.tool {
        return Some(format!("it is of infergate {}, and this is {}", was.tool, is.tool));
    }
    // A restart can leave some other memory to the system.
    let machine = |receipt: &PairedReceipt| Machine { memory_bytes: 0, ..receipt.machine.clone() };
    if machine(was) != machine(is) {
        return Some(format!("it is of another machine ({}, and this is {})", was.machine.class, is.machine.class));
    }
    let base = side("base", Some(&was.base), Some(&is.base));
    let head = base.or_else(|| side("head", Some(&was.head), Some(&is.head)));
    if let Some(what) = head.or_else(|| side("the anchor", anchors(was).as_ref(), anchors(is).as_ref())) {
        return Some(what);
    }
    if (was.threads, was.seed) != (is.threads, is.seed) {
        return text("it was measured with another number of threads or another seed");
    }
    if suite(was) != suite(is) || load(was) != load(is) || without(was) != without(is) {
        return text("it measured other cases");
    }
    let said = was.cases.iter().zip(&is.cases).find(|(was, is)| {
        was.timed != is.timed
            || was.base_output.sha256 != is.base_output.sha256
            || was.head_output.sha256 != is.head_output.sha256
    });
    if let Some((case, _)) = said {
        return Some(format!("{}: the output is another one now", case.id));
    }
    let of_length = was.other_lengths.iter().find(|was| {
        let is = is.other_lengths.iter().find(|is| is.id == was.id);
        is.is_some_and(|is| {
            was.base_output.sha256 != is.base_output.sha256 || was.head_output.sha256 != is.head_output.sha256
        })
    });
    if let Some(length) = of_length {
        return Some(format!("{}: the output is another one now", length.id));
    }
    if was.layouts != is.layouts || was.servers != is.servers {
        return text("it drew from other builds or servers");
    }
    if !was.cases.iter().all(|case| has_asked_limits(case, request)) || anchor(was) != anchor(is) {
        return text("other limits were asked for");
    }
    None
}

/// Whether a case's limits are those that this run would give it, were they asked for or not.
fn has_asked_limits(case: &PairedCase, request: &PairedRequest) -> bool {
    if let Some(load) = &case.load {
        let Some(asked) = &request.under_load else { return false };
        let is_asked = |seconds: f64| load.times.length_ns().abs_diff((seconds * 1e9) as u64) <= 1;
        return asked.limits.under_load(load.metric) == case.threshold && asked.window_s.is_none_or(is_asked);
    }
    let is_mean = |mean: MeanTest| mean_test(request.mean_threshold, case.threshold, mean.expected_std) == mean;
    case.threshold_by_noise == request.threshold.is_none()
        && case.threshold == median_threshold(request.threshold, case.expected_std)
        && case.mean.is_none_or(is_mean)
}

/// What is not the same of one side's build.
fn side(name: &str, was: Option<&SideRecord>, is: Option<&SideRecord>) -> Option<String> {
    let what = match (was, is) {
        (Some(was), Some(is)) if was.build != is.build => "is another build",
        (Some(was), Some(is)) if was.engine != is.engine => "loads another engine or model",
        (Some(_), Some(_)) | (None, None) => return None,
        _ => "was not measured in both",
    };
    Some(format!("{name} {what}"))
}
