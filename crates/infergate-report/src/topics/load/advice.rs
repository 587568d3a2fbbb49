//! What to do about the numbers of a load run, by rules: each says the number it rests on, and there is none without.

use infergate_core::stats::samples_needed;
use infergate_load::summary::roofline::{Roofline, roofline};
use infergate_receipts::TargetRecord;

use super::{at_load, at_most_users, cost, winners};
use crate::load::{Metric, Point, READING_TOKENS_PER_S, SLUGGISH_NS, View, WAITED_FOR_NS, unusable};
use crate::model::Section;
use crate::topics::ends;
use crate::units::{duration, listed, percent, times};

/// The rules, in the order they are read. A new one is a function and a line.
const RULES: &[fn(&View) -> Option<String>] =
    &[rate_limit, comfortable, first_word, queueing, higher_loads, bottleneck, price_of_speed, more_requests, again];

/// An output that is higher by less than this is hardly higher.
const GROWTH: f64 = 0.10;
/// Less than this part of the output that users would get alone, or of the time, is not most of it.
const MOST: f64 = 0.5;

/// Nothing of a run that is not to be used, or without tokens.
pub fn topic(view: &View) -> Option<Section> {
    let rules = RULES.iter().filter(|_| view.has_tokens() && unusable(view).is_none());
    let advice: Vec<String> = rules.filter_map(|rule| rule(view)).collect();
    Some(Section::new("load_advice", "What to do").on_terminal().with([advice]))
}

/// Where a server refused most.
fn rate_limit(view: &View) -> Option<String> {
    let refused = |point: &Point| Some(point.summary.kept_out() as f64).filter(|count| *count > 0.0);
    let [_, (point, count)] = ends(&view.points, refused)?;
    let (place, ended) = (view.place_name(point), point.summary.ended());
    Some(format!(
        "Send less at once, or raise the rate limit: {count:.0} of {ended} requests were refused (429) at {place}"
    ))
}

/// A point with one of its medians.
type Slowest<'a> = (&'a Point, f64);

/// The highest load up to which nobody who reads along waits, by the slowest TTFT and ITL of a series, and those of the next load.
fn readable(view: &View) -> Option<([Slowest<'_>; 2], Option<&Point>)> {
    let slowest = |load, metric| Some(ends(at_load(view, load), |point| point.p50(metric))?[1]);
    let medians = |load| Some([slowest(load, Metric::Ttft)?, slowest(load, Metric::Itl)?]);
    let known: Vec<[Slowest<'_>; 2]> = view.loads().into_iter().map_while(medians).collect();
    let within = known.iter().take_while(|[ttft, itl]| ttft.1 < WAITED_FOR_NS && itl.1 < SLUGGISH_NS).count();
    Some((*known.get(within.checked_sub(1)?)?, known.get(within).map(|[(next, _), _]| *next)))
}

/// Up to which load nobody who reads along waits, for the title.
pub fn readers(view: &View) -> Option<String> {
    readable(view).map(|([(point, _), _], _)| format!("Up to {} nobody who reads along waits", point.arrivals.name()))
}

fn comfortable(view: &View) -> Option<String> {
    let ([(point, ttft_ns), (_, itl_ns)], next) = readable(view)?;
    let beyond = next.map(|next| format!(" (the next level, {}, is too much)", next.arrivals.name()));
    let [ttft, itl, waited_for, sluggish] = [ttft_ns, itl_ns, WAITED_FOR_NS, SLUGGISH_NS].map(duration);
    Some(format!(
        "Serve up to {} where somebody reads along{}: TTFT P50 is at most {ttft} (limit {waited_for}), ITL P50 {itl} ({sluggish}){}",
        point.arrivals.name(),
        beyond.unwrap_or_default(),
        each_holds(view)
    ))
}

/// The highest such load of each scenario, where they differ. Several targets take turns, so none of them holds its users alone.
fn each_holds(view: &View) -> String {
    // An answer of one token has no gap.
    let is_quick = |point: &&&Point| {
        point.p50(Metric::Ttft).is_some_and(|ttft| ttft < WAITED_FOR_NS)
            && point.p50(Metric::Itl).is_none_or(|itl| itl < SLUGGISH_NS)
    };
    let held = view.series().into_iter().filter_map(|series| {
        let load = view.line(series).iter().take_while(is_quick).last()?.arrivals.name();
        Some((view.series_name(series), load))
    });
    let held: Vec<(String, String)> = held.collect();
    if view.has_targets() || held.windows(2).all(|two| two[0].1 == two[1].1) {
        return String::new();
    }
    format!("; each alone holds: {}", listed(held.iter().map(|(name, load)| format!("{name} {load}"))))
}

/// Which of several targets has the first word, where at the lowest load each writes as fast as people read.
fn first_word(view: &View) -> Option<String> {
    let points = view.levels().next().filter(|_| view.has_targets())?;
    let reads_along = |point: &Point| point.p50(Metric::DecodeSpeed) >= Some(READING_TOKENS_PER_S);
    let mut known: Vec<_> =
        points.iter().filter_map(|point| Some((point, point.spread(Metric::Ttft).p50_within?))).collect();
    known.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
    let &[(first, within), (_, next), ..] = &known[..] else { return None };
    (known.len() == points.len() && points.iter().all(reads_along) && within.1 < next.0).then(|| {
        format!(
            "Where somebody waits for the first word, take {}: {} at {}. All write at least as fast as people read, so more speed pays only where \
             nobody reads along",
            view.target_name(first),
            duration(first.p50(Metric::Ttft).unwrap_or_default()),
            first.arrivals.name()
        )
    })
}

/// The load from which on more users wait longer, and however many of them get hardly more output.
fn queueing(view: &View) -> Option<String> {
    let begins = |line: &[&Point]| {
        let &[few, more, ..] = line else { return None };
        few.users()?;
        let output_of = |later: &Point| Some(later.summary.system_tokens_per_s? / few.summary.system_tokens_per_s?);
        let (output, wait) = (output_of(more)?, more.p50(Metric::Ttft)? / few.p50(Metric::Ttft)?);
        let is_most = line.iter().all(|later| output_of(later).is_none_or(|output| output <= 1.0 + GROWTH));
        let (few, more) = (view.place_name(few), more.arrivals.name());
        (is_most && wait > 1.0 + GROWTH).then(|| {
            let [output, wait] = [output, wait].map(times);
            format!("Where only throughput counts, stop at {few}: {more} get {output} the output and {wait} the TTFT")
        })
    };
    view.series().into_iter().find_map(|series| {
        let line = view.line(series);
        (0..line.len()).find_map(|at| begins(&line[at..]))
    })
}

/// Where the highest load still gets more output: the run ended before the server was full.
fn higher_loads(view: &View) -> Option<String> {
    view.series().into_iter().find_map(|series| {
        let &[.., few, more] = &view.line(series)[..] else { return None };
        let output = more.summary.system_tokens_per_s? / few.summary.system_tokens_per_s?;
        (output > 1.0 + GROWTH).then(|| {
            let (more, few) = (view.place_name(more), few.arrivals.name());
            format!("Measure higher loads, too: {more} still get {} the output of {few}", times(output))
        })
    })
}

/// What takes most of the time where the most users get less than half of what each would get alone.
fn bottleneck(view: &View) -> Option<String> {
    let probes = view.receipt.probes.as_ref()?;
    let [TargetRecord::Local { cost: Some(cost), .. }] = &view.receipt.targets[..] else { return None };
    let needs = |point| roofline(view.record(point), cost, probes);
    let [(point, scaling), _] = ends(at_most_users(view), |point| needs(point).and_then(|_| view.scaling(point)))?;
    let Roofline { memory, compute } = needs(point).filter(|_| scaling < MOST)?;
    let (remedy, bottleneck) = if memory + compute < MOST {
        match reading_prompts(view, point).filter(|part| (MOST..1.0).contains(part)) {
            Some(part) => (
                "Profile how the engine reads prompts",
                format!("reading one for each user in turn would take {} of an answer's time", percent(part)),
            ),
            None => ("Profile the engine", "neither memory bandwidth nor compute explains it".to_owned()),
        }
    } else if memory > compute {
        ("Use smaller weights", "memory bandwidth is the likely bottleneck".to_owned())
    } else {
        ("Use more cores or shorter prompts", "compute is the likely bottleneck".to_owned())
    };
    let place = view.place_name(point);
    let [scaling, memory, compute] = [scaling, memory, compute].map(percent);
    Some(format!(
        "{remedy}: scaling is {scaling} at {place}, and {bottleneck} (at the probed rates memory-bound steps need {memory} of \
         that time, arithmetic-bound ones {compute})"
    ))
}

/// While one request is answered each user's prompt is read once: what that takes of its time, if each takes as long as for one user alone.
fn reading_prompts(view: &View, point: &Point) -> Option<f64> {
    let alone_ns = view.alone(point)?.p50(Metric::Ttft)?;
    Some(f64::from(point.users()?) * alone_ns / point.p50(Metric::E2e)?)
}

/// The dearest target against the cheapest one at the lowest load.
fn price_of_speed(view: &View) -> Option<String> {
    let [(cheap, least), (dear, most)] = ends(view.levels().next()?, |point| cost::of_request(view, point))?;
    let speed = winners::between(view, [dear.series, cheap.series])?;
    let [dearest, cheapest] = [dear, cheap].map(|point| view.target_name(point));
    (most > least && least > 0.0).then(|| {
        format!("Weigh price against speed: {dearest} costs {} as much as {cheapest}. {speed}", times(most / least))
    })
}

/// How many requests a P99 takes, where a level has fewer.
fn more_requests(view: &View) -> Option<String> {
    let (needed, fewest) = (samples_needed(0.99)?, view.points.iter().min_by_key(|point| point.summary.measured)?);
    let (requests, measured) = (needed * view.receipt.targets.len(), fewest.summary.measured);
    (measured < needed).then(|| {
        let place = view.place_name(fewest);
        let of_target = if view.has_targets() { " a target" } else { "" };
        format!("For P99 take --requests {requests}: it takes {needed}{of_target}, and there are {measured} at {place}")
    })
}

/// A comparison of targets holds for its hours and its models.
fn again(view: &View) -> Option<String> {
    let took_ns: u64 = view.receipt.levels.iter().map(|level| level.wall_ns).sum();
    view.has_targets().then(|| {
        format!(
            "Run it again at other hours, and for each new model or provider with the same prompts: it took {}",
            duration(took_ns as f64)
        )
    })
}
