//! Why a number does not exist, in one sentence each.

use crate::model::Missing;

pub fn reason(missing: Missing) -> String {
    match missing {
        Missing::AmongFailed { failed, requests } => {
            format!("among the requests that failed, {failed} of {requests}")
        }
        Missing::TooFewSamples { needed, samples } => format!("takes {needed} samples, there are {samples}"),
        Missing::TooFewRequests { needed, requests } => {
            format!("takes {needed} requests, there are {requests}: gaps of one request are not independent")
        }
        Missing::TooFewProcesses { needed, processes } => format!("takes {needed} processes, there are {processes}"),
        Missing::Undefined => "not defined here".into(),
        Missing::NotMeasured => "not measured".into(),
        Missing::NotGiven => "this kind of comparison does not give it".into(),
        Missing::NoLimit => "advisory: it is shown and not judged, so it has no limit".into(),
        Missing::EngineSilent => "the engine does not say".into(),
        Missing::SystemSilent => "this operating system does not say".into(),
        Missing::NotCounted => "not counted".into(),
        Missing::NoBase => "nothing to compare with".into(),
        Missing::NoProbes => "the hardware was not probed, or the engine does not say what work it does".into(),
        Missing::BeyondHardware => {
            "faster than the probes, so no share of the hardware is shown: they ran in a slower moment".into()
        }
        Missing::NoTokenizer => "the prompt was given as tokens, without a tokenizer".into(),
        Missing::AlreadyLoaded => "the model was loaded already".into(),
        Missing::NotKept => "a receipt keeps the ids of tokens; the text, too, with --keep-text".into(),
        Missing::Exact => "counted to the byte, so any growth counts".into(),
        Missing::NoWindow => {
            "no request ran at full load to its end; give a longer --duration, or more --requests".into()
        }
        Missing::NoSingleUser => "takes a level of one user, and there is none".into(),
        Missing::Shared => "known for all targets together, which share the users".into(),
        Missing::NoUsage => "the server sends no token counts".into(),
        Missing::NoPrice => "no price was given".into(),
        Missing::NoCrossing => "one of the two is faster for every length".into(),
        Missing::NotAgreed => "it is not shown that the two cross".into(),
    }
}

/// Columns that have a number in no row, and why, each reason once; `None` where there is nothing to say.
pub fn left_out(columns: &[(&str, Vec<Missing>)]) -> Option<String> {
    let mut grouped: Vec<(String, Vec<&str>)> = Vec::new();
    for (title, reasons) in columns {
        let Some(why) = reasons.first().map(|why| reason(*why)) else { continue };
        match grouped.iter_mut().find(|(known, _)| *known == why) {
            Some((_, titles)) => titles.push(*title),
            None => grouped.push((why, vec![*title])),
        }
    }
    let sentences: Vec<String> = grouped.iter().map(|(why, titles)| format!("{} ({why})", titles.join(", "))).collect();
    (!sentences.is_empty()).then(|| format!("Not shown: {}.", sentences.join("; ")))
}

/// Why a fraction of the hardware is not shown; `None` where it is, or is not known.
pub fn beyond_hardware(fraction: Option<f64>) -> Option<String> {
    fraction.filter(|fraction| *fraction > 1.0).map(|_| reason(Missing::BeyondHardware))
}
