//! What ran: targets, scenarios, client, and what has to be known to read the numbers.

use infergate_receipts::{Price, TargetRecord};

use crate::load::View;
use crate::model::{Cell, Missing, Rows, Section, Table, Unit};

pub fn scenarios(view: &View<'_>) -> Option<Section> {
    let receipt = view.receipt;
    let tokens = |count: u32| Cell::of(count, Unit::Tokens);
    let table = Rows::of("scenarios", "", &receipt.scenarios)
        .words("scenario", "scenario", |scenario| Cell::foreign(&scenario.name))
        .numbers("input_tokens", "tokens in", |scenario| {
            if receipt.dataset_prompts.is_none() { tokens(scenario.input_tokens) } else { "the dataset's".into() }
        })
        .numbers("output_tokens", "out", |scenario| tokens(scenario.output_tokens))
        .about("at most")
        .numbers("turns", "turns", |scenario| scenario.turns)
        .about("requests of one conversation")
        .numbers("turn_tokens", "more a turn", |scenario| {
            if scenario.turns > 1 { tokens(scenario.turn_tokens) } else { "".into() }
        })
        .about("tokens that each further turn adds to the prompt")
        .table()
        .on_terminal();
    let invalid = receipt.invalid.iter().map(|why| format!("invalid: {why}"));
    let remarks: Vec<String> = invalid.chain(receipt.notes.clone()).collect();
    let section = Section::new("load_scenarios", "Scenarios").on_terminal().with([table]);
    Some(section.with([remarks]))
}

/// Facts, targets, and what a local engine did.
pub fn topic(view: &View<'_>) -> Option<Section> {
    let tables = [facts(view), targets(view), batches(view)];
    Some(Section::new("load", "Load run").with(tables).folded())
}

fn facts(view: &View<'_>) -> Table {
    let receipt = view.receipt;
    let facts = vec![
        ("began", Cell::foreign(&receipt.created)),
        ("infergate", Cell::foreign(&receipt.tool)),
        ("client", Cell::foreign(&receipt.machine.class)),
        ("seed", receipt.seed.to_string().into()),
    ];
    Table::facts("run", "Run", facts)
}

fn targets(view: &View<'_>) -> Table {
    let price = |target: &TargetRecord, of: fn(Price) -> f64| {
        Cell::number(target.price().map(of), Unit::Price, Missing::NoPrice)
    };
    let table = Rows::of("targets", "Targets", (0..).zip(&view.receipt.targets))
        .words("target", "target", |(index, _)| Cell::foreign(&view.target(*index)))
        .words("model", "model", |(_, target)| match target {
            TargetRecord::Endpoint { model, .. } => Cell::foreign(model),
            TargetRecord::Local { engine, .. } => Cell::foreign(&engine.model),
        })
        .words("where", "where", |(_, target)| match target {
            TargetRecord::Endpoint { url, .. } => Cell::foreign(url),
            TargetRecord::Local { engine, threads, .. } => {
                Cell::foreign(&format!("{} {}, {threads} threads", engine.name, engine.version))
            }
        })
        .words("api", "API", |(_, target)| match target {
            TargetRecord::Endpoint { api, .. } => Cell::foreign(api),
            TargetRecord::Local { .. } => "none".into(),
        })
        .words("extensions", "extensions", |(_, target)| match target {
            TargetRecord::Endpoint { extensions, .. } if !extensions.is_empty() => {
                Cell::foreign(&extensions.join(", "))
            }
            _ => "none".into(),
        })
        .about("fields that not every server knows, sent with each request")
        .numbers("input_price", "price per million in", |(_, target)| price(target, |price| price.input_per_million))
        .numbers("output_price", "price per million out", |(_, target)| price(target, |price| price.output_per_million))
        .table();
    // The first line of a terminal names the only one.
    if view.has_targets() { table.on_terminal() } else { table }
}

/// What a local engine did with many requests.
fn batches(view: &View<'_>) -> Table {
    let points = view.points.iter();
    let batches = points.filter_map(|point| Some((point, view.record(point)?.batch.as_ref()?)));
    view.lead_of_point(Rows::of("batches", "Batches of the local engine", batches), |(point, _)| point)
        .numbers("slots", "room for", |(_, batch)| batch.slots)
        .about("requests that the engine had room for at once")
        .numbers("largest_batch", "largest batch", |(_, batch)| batch.largest_batch)
        .about("most requests that one step worked on")
        .words("batches", "a step computes", |(_, batch)| match batch.batches {
            Some(true) => "several requests together",
            Some(false) => "one request, in turn",
            None => "not known",
        })
        .numbers("kv_bytes", "keys and values", |(_, batch)| {
            Cell::number(batch.kv_bytes_per_request, Unit::Bytes, Missing::EngineSilent)
        })
        .numbers("compared", "compared", |(_, batch)| batch.compared)
        .about("outputs that were the same when computed alone, up to near ties")
        .table()
        .on_terminal()
}
