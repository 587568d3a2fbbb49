//! Sentences about a load run: what a section shows, and what rules found, from the numbers.

use infergate_core::load::Arrivals;
use infergate_core::printable::printable_within;

use crate::load::judge::load;
use crate::load::slo::Limit;
use crate::load::summary::Counted;
use crate::receipt::Metric;
use crate::report::load::smoothness;
use crate::report::load::winners::Winners;
use crate::report::model::Unit;
use crate::report::sections::load::decode_speed::READING_TOKENS_PER_S;
use crate::report::units;

/// What decode speed is.
pub const ABOUT_DECODE_SPEED: &str = "Tokens a second that each user receives once the first one is there (1 / TPOT), as more users share the \
                                      server.";
/// What ITL is.
pub const ABOUT_ITL: &str = "The gap between two pieces of a stream, every one counted. Under 20 ms a stream feels instant, from 20 to 70 ms \
                             acceptable, above 70 ms sluggish.";
/// What scaling efficiency is.
pub const ABOUT_SCALING: &str =
    "Output of all N users / (N x output of one user alone). At 100 % every user is as fast as one alone.";
/// What the range of decode speed is.
pub const ABOUT_DECODE_RANGE: &str = "Between the fastest and the slowest scenario at each load. A narrow band says that the length of prompts and \
                                      answers hardly matters.";
/// What the range of TTFT is.
pub const ABOUT_TTFT_RANGE: &str = "Between the scenario that waits shortest for its first token and the one that waits longest. Longer prompts take \
                                    longer to read.";
/// How targets are compared.
pub const ABOUT_TARGETS: &str =
    "Requests went to the targets in turn, in the same minutes. Each median stands with its 95 % interval.";
/// How targets are compared by the length of the answer.
pub const ABOUT_WINNERS: &str = "An answer of n tokens takes TTFT + n x TPOT. Of two targets one can be the faster for short answers and the other \
                                 for long ones; where they cross, both take the same time.";
/// How the best is named.
pub const ABOUT_USES: &str = "Who waits for the first word feels TTFT, who reads nothing along feels tokens a second, who needs the whole answer feels \
                              E2E. A target is named the best only where its interval lies apart from all the others'.";
/// What the quarters are.
pub const ABOUT_STABILITY: &str =
    "The measured requests of each level in four parts of as many each, in the order of their starts.";
/// How cost is counted.
pub const ABOUT_COST: &str = "By the given prices of a million tokens, in their currency, and the server's own counts, over the requests that were \
                              measured. Failed requests are not in it.";
/// What agreement is.
pub const ABOUT_AGREEMENT: &str = "How many of the dataset's prompts two targets answered with the same text. Two that serve one model can differ by a coarser \
                                   quantization, another order of sums, or a special token before the prompt. Which answer is better is not said.";
/// What the audit is.
pub const ABOUT_AUDIT: &str =
    "Before each load the client is driven against a server that wrote down when it sent each token.";
/// What the system's own times of receipt are.
pub const ABOUT_RECEIVED: &str = "In the run itself the system noted when it received what the client read. From then to the client's stamp is the client's delay.";
/// No target is shown to be the best.
pub const NO_BEST: &str = "none: intervals overlap";
/// No target is shown to be faster.
pub const NEITHER: &str = "neither: intervals overlap";

/// The figures, one sentence each.
pub fn definitions() -> Vec<String> {
    [
        "TTFT, time to first token: from the request's start to its first token.",
        "ITL, inter-token latency: each gap between two pieces of the answer.",
        "E2E, end-to-end latency: from the request's start to its last token.",
        "Output throughput of a request: its output tokens / E2E.",
    ]
    .map(str::to_owned)
    .into()
}

/// No level has the requests that a P99 takes.
pub fn no_p99(most: usize, needed: usize) -> String {
    format!("No P99 is printed: it takes {needed} requests and no level has more than {most}; measure longer for one.")
}

/// `chatbot: end-to-end latency`.
pub fn of_scenario(scenario: &str, what: &str) -> String {
    format!("{scenario}: {what}")
}

/// A reason why numbers cannot be used.
pub fn invalid(why: &str) -> String {
    format!("invalid: {why}")
}

/// Whether a step of a local engine computes several requests.
pub fn batches(batches: Option<bool>) -> &'static str {
    match batches {
        Some(true) => "several requests together",
        Some(false) => "one request, in turn",
        None => "not known",
    }
}

/// What a reader makes of a decode speed.
pub fn reading(tokens_per_s: f64) -> &'static str {
    let (slow, fast) = READING_TOKENS_PER_S;
    match tokens_per_s {
        speed if speed < slow => "slower than reading",
        speed if speed <= fast => "as fast as reading",
        _ => "faster than reading",
    }
}

/// The fastest and the slowest user.
pub fn decode_speed(fast: (&str, f64), slow: (&str, f64)) -> String {
    let show = |value| Unit::TokensPerS.show(value);
    if fast.0 == slow.0 {
        return format!("The middle decode speed of a user is {} ({}): {}", show(fast.1), fast.0, reading(fast.1));
    }
    format!(
        "The middle decode speed of a user is from {} ({}) down to {} ({}): {} at the slowest",
        show(fast.1),
        fast.0,
        show(slow.1),
        slow.0,
        reading(slow.1)
    )
}

/// The smoothest and the roughest stream.
pub fn itl(smooth: (&str, f64), rough: (&str, f64)) -> String {
    let show = |value| Unit::Ns.show(value);
    if smooth.0 == rough.0 {
        return format!("The middle gap is {} ({}): {}", show(smooth.1), smooth.0, smoothness(smooth.1));
    }
    format!(
        "The middle gap is from {} ({}: {}) up to {} ({}: {})",
        show(smooth.1),
        smooth.0,
        smoothness(smooth.1),
        show(rough.1),
        rough.0,
        smoothness(rough.1)
    )
}

/// The best and the worst scenario at the most users.
pub fn scaling(users: u32, good: (&str, f64), poor: (&str, f64)) -> String {
    let show = |value| Unit::Fraction.show(value);
    if good.0 == poor.0 {
        let each = Unit::Times.show(f64::from(users) * good.1);
        return format!(
            "At {users} users scaling efficiency is {}: all of them get {each} the output of one",
            show(good.1)
        );
    }
    format!(
        "At {users} users scaling efficiency is from {} ({}) down to {} ({})",
        show(good.1),
        good.0,
        show(poor.1),
        poor.0
    )
}

/// The fastest of all, and the range at the highest load.
pub fn decode_range(peak: (&str, f64), arrivals: &Arrivals, (least, most): (f64, f64)) -> String {
    let show = |value| Unit::TokensPerS.show(value);
    format!(
        "The middle decode speed of a user is at most {} ({}). At {} it is from {} to {}, by scenario",
        show(peak.1),
        peak.0,
        load(arrivals),
        show(least),
        show(most)
    )
}

/// The shortest and the longest wait.
pub fn ttft_range(short: (&str, f64), long: (&str, f64)) -> String {
    let show = |value| Unit::Ns.show(value);
    format!("The middle TTFT is from {} ({}) to {} ({})", show(short.1), short.0, show(long.1), long.0)
}

/// Targets that serve models of different names.
pub fn unequal(models: &[&str]) -> String {
    let named = models.iter().take(MOST_NAMED).map(|model| printable_within(model, MAX_NAME_CHARS).into_owned());
    let named: Vec<String> = named.collect();
    format!(
        "Not the same model everywhere, or not in one format: {}. Part of each difference is the model's",
        named.join(", ")
    )
}

/// Targets that run on the client's machine.
pub fn shared(targets: usize, cores: usize) -> String {
    format!(
        "{targets} targets and the client shared the {cores} cores of one machine: with more than one user each slowed the others"
    )
}

/// Targets whose answers have different lengths.
pub fn lengths(long: (&str, f64), short: (&str, f64)) -> String {
    format!(
        "Answers differ in length: {} tokens ({}) and {} ({}), so compare E2E by the crossing points and not by itself",
        Unit::Plain.show(long.1),
        long.0,
        Unit::Plain.show(short.1),
        short.0
    )
}

/// Tokens that no server counted.
pub fn counted(how: Counted, targets: &[String]) -> String {
    let whose = if targets.is_empty() { "the server".to_owned() } else { targets.join(" and ") };
    match how {
        Counted::Tokenizer => {
            format!("No usage came from {whose}; tokens were counted in the texts of the answers by a tokenizer")
        }
        Counted::Pieces | Counted::Usage => {
            format!(
                "No usage came from {whose}; tokens were counted as pieces of the stream, and a piece can hold several"
            )
        }
    }
}

/// Pairs beyond those that are compared.
pub fn more_pairs(more: usize) -> String {
    format!("{more} more pairs of targets were not compared")
}

/// The figure that decides for a use.
pub fn figure_that_matters(metric: Metric) -> &'static str {
    match metric {
        Metric::DecodeSpeed => "tokens a second (decode speed)",
        other => other.short(),
    }
}

/// The figure that changed most over the run.
pub fn stability(place: &str, figure: &str, change: f64, limit: f64) -> String {
    let (change, limit) = (units::change(change), Unit::Fraction.show(limit));
    format!("Between quarters of a level {figure} of {place} changes most, by {change} (steady is up to {limit})")
}

/// Limits of percentiles.
pub fn limits_of_levels(limits: &[&Limit]) -> String {
    format!("Limits of a level: {}", spelt(limits))
}

/// Limits of each request.
pub fn limits_of_requests(limits: &[&Limit]) -> String {
    format!("Limits of each request: {}", spelt(limits))
}

fn spelt(limits: &[&Limit]) -> String {
    limits.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Models in a sentence.
const MOST_NAMED: usize = 4;
/// Characters of a name in a title.
const MAX_NAME_CHARS: usize = 80;

/// A model and where it is.
pub fn server(model: &str, place: &str) -> String {
    format!("{} on {}", printable_within(model, MAX_NAME_CHARS), printable_within(place, MAX_NAME_CHARS))
}

/// One of several targets and its model.
pub fn named_server(name: &str, model: &str) -> String {
    format!("{name} ({})", printable_within(model, MAX_NAME_CHARS))
}

/// What was put under load, in one line: the first of them, where there are many.
pub fn title(named: &[String], targets: usize) -> String {
    let more = targets.saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more} under load", named.join(", "))
}

/// What the most users get: the wait for the first token, and how many times the output of one.
pub fn result(load: &str, times: Option<(f64, f64)>, (shortest, longest): (f64, f64)) -> String {
    let after = if shortest == longest { Unit::Ns.show(longest) } else { units::durations(shortest, longest) };
    let times = times.map_or_else(String::new, |(least, most)| {
        let range = if least == most { String::new() } else { format!("{least:.1} to ") };
        format!(", and all together get {range}{most:.1} times the output of one")
    });
    format!("At {load} the first token comes after {after}{times}")
}

/// Which way is better.
pub fn direction(metric: Metric) -> &'static str {
    if metric.is_rate() { "More is better." } else { "Less is better." }
}

/// All figures in one picture.
pub fn together(first: &str) -> String {
    format!(
        "Each figure's median against its own at {first}: a time that doubles stands at 2, a throughput that halves at 0.5."
    )
}

/// Which of two targets is faster, as far as it is shown.
pub fn winners(found: &Winners, first: &str, second: &str) -> String {
    let name = |is_first: bool| if is_first { first } else { second };
    let of = |wins: Option<bool>, answers: &str| match wins {
        Some(wins) => format!("{} is faster for {answers} answers", name(wins)),
        None => format!("for {answers} answers {NEITHER}"),
    };
    match (found.short, found.long, found.crossing) {
        (None, None, _) => format!("{first} and {second}: {NEITHER}"),
        (Some(short), Some(long), _) if short == long => {
            format!("{} is faster than {} for every length of answer", name(short), name(!short))
        }
        (Some(short), Some(long), Some((tokens, (low, high)))) => format!(
            "{} is faster up to {tokens:.0} tokens of answer (95 % interval {low:.0} to {high:.0}), {} beyond",
            name(short),
            name(long)
        ),
        (Some(_), Some(_), None) => {
            format!("{}, {}; where they cross is not known", of(found.short, "short"), of(found.long, "long"))
        }
        (short, long, _) => format!("{first} and {second}: {}, {}", of(short, "short"), of(long, "long")),
    }
}

/// Where two targets take the same time.
pub fn crossing(tokens: f64, (low, high): (f64, f64)) -> String {
    format!("same time at {tokens:.0} tokens of answer, 95 % interval {low:.0} to {high:.0}")
}

/// A picture of requests, of which not every one is drawn.
pub fn over_the_run(every: usize) -> String {
    let said = "A point a request that completed, where it started. Steps are levels; a slope or a cloud within a level is not steady.";
    if every > 1 { format!("{said} One in {every} requests is drawn.") } else { said.into() }
}
