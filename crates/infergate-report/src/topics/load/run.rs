//! What ran: targets, scenarios, client, and what has to be known to read the numbers.

use infergate_load::summary::repeats;
use infergate_receipts::{Price, TargetRecord};

use super::cost::is_priced;
use crate::load::View;
use crate::model::{Cell, Missing, Rows, Section, Table, Unit};

pub fn scenarios(view: &View) -> Option<Section> {
    let receipt = &view.receipt;
    let tokens = |count: u32| Cell::of(count, Unit::Tokens);
    let table = Rows::of("scenarios", "", &receipt.scenarios)
        .words("scenario", |scenario| Cell::foreign(&scenario.name))
        .titled_numbers("input_tokens", "tokens in", |scenario| {
            if receipt.dataset_prompts.is_none() { tokens(scenario.input_tokens) } else { "the dataset's".into() }
        })
        .titled_numbers("output_tokens", "out", |scenario| tokens(scenario.output_tokens))
        .about("at most")
        .numbers("turns", |scenario| scenario.turns)
        .about("requests of one conversation")
        .titled_numbers("turn_tokens", "more a turn", |scenario| {
            if scenario.turns > 1 { tokens(scenario.turn_tokens) } else { "".into() }
        })
        .about("tokens that each further turn adds to the prompt")
        .table()
        .on_terminal();
    let invalid = receipt.invalid.iter().map(|why| format!("invalid: {why}"));
    let remarks: Vec<String> = invalid.chain(receipt.notes.clone()).chain(repeats::warning(receipt)).collect();
    let section = Section::new("load_scenarios", "Scenarios").on_terminal().with([table]);
    Some(section.with([remarks]))
}

/// Which servers were asked, and what a local engine did: what that one is stands in the configuration.
pub fn topic(view: &View) -> Option<Section> {
    let servers = servers(view);
    let run = (!servers.rows.is_empty()).then(|| facts(view));
    Some(Section::new("load", "Load run").with(run).with([servers, batches(view)]).folded())
}

fn facts(view: &View) -> Table {
    let receipt = &view.receipt;
    let facts = vec![
        ("began", Cell::foreign(&receipt.created)),
        ("infergate", Cell::foreign(&receipt.tool)),
        ("client", Cell::foreign(&receipt.machine.class)),
        ("seed", receipt.seed.to_string().into()),
    ];
    Table::facts("run", "Run", facts)
}

fn servers(view: &View) -> Table {
    let servers = (0..).zip(&view.receipt.targets).filter_map(|(index, target)| {
        let TargetRecord::Endpoint { model, url, api, extensions, price, .. } = target else { return None };
        Some((view.target(index), model, url, api, extensions, *price))
    });
    let cost = |price: &Option<Price>, of: fn(Price) -> f64| Cell::number(price.map(of), Unit::Price, Missing::NoPrice);
    let table = Rows::of("targets", "Targets", servers)
        .words("target", |(name, ..)| Cell::foreign(name))
        .words("model", |(_, model, ..)| Cell::foreign(model))
        .words("where", |(_, _, url, ..)| Cell::foreign(url))
        .titled_words("api", "API", |(_, _, _, api, ..)| Cell::foreign(api))
        .words("extensions", |(.., extensions, _)| {
            if extensions.is_empty() { Cell::text("none") } else { Cell::foreign(&extensions.join(", ")) }
        })
        .about("fields that not every server knows, sent with each request")
        .with_if(is_priced(view), |rows| {
            rows.titled_numbers("input_price", "price per million in", |(.., price)| {
                cost(price, |it| it.input_per_million)
            })
            .titled_numbers("output_price", "price per million out", |(.., price)| {
                cost(price, |it| it.output_per_million)
            })
        })
        .table();
    // The first line of a terminal names the only one.
    if view.has_targets() { table.on_terminal() } else { table }
}

/// What a local engine did with many requests.
fn batches(view: &View) -> Table {
    let points = view.points.iter();
    let batches = points.filter_map(|point| Some((point, view.record(point).batch.as_ref()?)));
    view.lead_of_point(Rows::of("batches", "Batches of the local engine", batches), |(point, _)| point)
        .titled_numbers("slots", "room for", |(_, batch)| batch.slots)
        .about("requests that the engine had room for at once")
        .titled_numbers("largest_batch", "largest batch", |(_, batch)| batch.largest_batch)
        .about("most requests that one step worked on")
        .titled_words("batches", "a step computes", |(_, batch)| match batch.batches {
            Some(true) => "several requests together",
            Some(false) => "one request, in turn",
            None => "not known",
        })
        .titled_numbers("kv_bytes", "keys and values a request", |(_, batch)| {
            Cell::number(batch.kv_bytes_per_request, Unit::Bytes, Missing::EngineSilent)
        })
        .numbers("compared", |(_, batch)| batch.compared)
        .about("outputs that were the same when computed alone, up to near ties")
        .table()
        .on_terminal()
}
