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
    let mut grouped: Vec<(Vec<&str>, String)> = Vec::new();
    for (title, reasons) in columns {
        let Some(why) = reasons.first() else { continue };
        let why = match reasons.iter().map(|reason| needed(*reason)).collect::<Option<Vec<_>>>() {
            Some(needed) => format!("takes {} samples, and no row has so many", needed.first()?),
            None => reason(*why),
        };
        match grouped.iter_mut().find(|(_, known)| *known == why) {
            Some((titles, _)) => titles.push(*title),
            None => grouped.push((vec![*title], why)),
        }
    }
    let said: Vec<String> = grouped.into_iter().map(|(titles, why)| format!("{} ({why})", titles.join(", "))).collect();
    (!said.is_empty()).then(|| format!("Not shown: {}.", said.join("; ")))
}

/// The samples that a number takes; `None` where they are not what is missing.
fn needed(missing: Missing) -> Option<usize> {
    match missing {
        Missing::TooFewSamples { needed, .. } | Missing::TooFewRequests { needed, .. } => Some(needed),
        _ => None,
    }
}
