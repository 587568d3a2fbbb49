//! What ran: targets, scenarios, client, and what has to be known to read the numbers.

use super::targets::caveats;
use crate::inputs::Inputs;
use crate::load::View;
use crate::model::{Cell, Column, Missing, Section, Table, Unit};
use infergate_receipts::{LoadReceipt, Price, TargetRecord};

/// Names of loads in one line.
const MOST_LOADS: usize = 20;

pub fn asked(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let receipt = view.receipt;
    let invalid = receipt.invalid.iter().map(|why| format!("invalid: {why}"));
    let said: Vec<String> = invalid.chain(receipt.notes.clone()).collect();
    let section = Section::new("load_scenarios", "Scenarios").on_terminal().with([scenarios(receipt).on_terminal()]);
    Some(section.with([caveats(&view)]).with([said]))
}

/// Facts, targets, and what a local engine did.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    // The configuration of a local engine says who, where and when.
    let is_said = inputs.subject().is_some();
    let has_targets = !is_said || view.receipt.targets.iter().any(|target| target.price().is_some());
    let section = Section::new("load", "Load run").with([facts(&view, is_said)]);
    Some(section.with(has_targets.then(|| targets(&view))).with([batches(&view)]).folded())
}

fn facts(view: &View<'_>, is_said: bool) -> Table {
    let receipt = view.receipt;
    let mut table = Table::facts("run", "Run");
    if !is_said {
        table.fact("began", Cell::foreign(&receipt.created));
        table.fact("infergate", Cell::foreign(&receipt.tool));
        table.fact("client", Cell::foreign(&receipt.machine.class));
        table.fact("client's processor", Cell::foreign(&receipt.machine.cpu_model));
        table.fact("seed", Cell::text(receipt.seed.to_string()));
    }
    let mut loads: Vec<String> = Vec::new();
    for level in &receipt.levels {
        let name = level.arrivals.name();
        if !loads.contains(&name) && loads.len() < MOST_LOADS {
            loads.push(name);
        }
    }
    table.fact("levels", Cell::foreign(&loads.join(", ")));
    if receipt.partial {
        table.fact("partial", Cell::text("the run was cut short"));
    }
    table
}

fn targets(view: &View<'_>) -> Table {
    let columns = vec![
        Column::words("target", "target"),
        Column::words("model", "model"),
        Column::words("where", "where"),
        Column::words("api", "API"),
        Column::words("http", "HTTP"),
        Column::words("extensions", "extensions").about("fields that not every server knows, sent with each request"),
        Column::numbers("input_price", "price in").about("of a million prompt tokens"),
        Column::numbers("output_price", "price out").about("of a million output tokens"),
    ];
    let mut table = Table::new("targets", "Targets", columns);
    for (index, target) in view.receipt.targets.iter().enumerate() {
        let price = |of: fn(Price) -> f64| Cell::number(target.price().map(of), Unit::Price, Missing::NoPrice);
        let none = || Cell::text("none");
        let mut cells = vec![Cell::foreign(&view.target(index))];
        cells.extend(match target {
            TargetRecord::Endpoint { url, api, model, http, extensions, .. } => {
                let sent = if extensions.is_empty() { none() } else { Cell::foreign(&extensions.join(", ")) };
                [Cell::foreign(model), Cell::foreign(url), Cell::foreign(api), Cell::foreign(http), sent]
            }
            TargetRecord::Local { engine, threads, .. } => {
                let place = Cell::foreign(&format!("{} {}, {threads} threads", engine.name, engine.version));
                [Cell::foreign(&engine.model), place, none(), none(), none()]
            }
        });
        cells.extend([price(|price| price.input_per_million), price(|price| price.output_per_million)]);
        table.row(cells);
    }
    table
}

fn scenarios(receipt: &LoadReceipt) -> Table {
    let columns = vec![
        Column::words("scenario", "scenario"),
        Column::numbers("input_tokens", "tokens in"),
        Column::numbers("output_tokens", "out").about("at most"),
        Column::numbers("turns", "turns").about("requests of one conversation"),
        Column::numbers("turn_tokens", "more a turn").about("tokens that each further turn adds to the prompt"),
    ];
    let mut table = Table::new("scenarios", "", columns);
    for scenario in &receipt.scenarios {
        let tokens = |count: u32| Cell::of(f64::from(count), Unit::Tokens);
        table.row(vec![
            Cell::foreign(&scenario.name),
            tokens(scenario.input_tokens),
            tokens(scenario.output_tokens),
            Cell::of(f64::from(scenario.turns), Unit::Count),
            tokens(scenario.turn_tokens),
        ]);
    }
    table
}

/// What a local engine did with many requests.
fn batches(view: &View<'_>) -> Table {
    let own = vec![
        Column::numbers("slots", "room for").about("requests that the engine had room for at once"),
        Column::numbers("largest_batch", "largest batch").about("most requests that one step worked on"),
        Column::words("batches", "a step computes"),
        Column::numbers("kv_bytes", "keys and values").about("memory of one request"),
        Column::numbers("compared", "compared")
            .about("outputs that were computed once more alone and were the same, up to near ties"),
    ];
    let mut table = Table::new("batches", "Batches of the local engine", [view.columns(), own].concat()).on_terminal();
    for point in &view.digest.points {
        let Some(batch) = view.receipt.levels.get(point.level).and_then(|level| level.batch.as_ref()) else { continue };
        let count = |count: u32| Cell::of(f64::from(count), Unit::Count);
        let computes = match batch.batches {
            Some(true) => "several requests together",
            Some(false) => "one request, in turn",
            None => "not known",
        };
        let own = vec![
            count(batch.slots),
            count(batch.largest_batch),
            Cell::text(computes),
            Cell::number(batch.kv_bytes_per_request.map(|bytes| bytes as f64), Unit::Bytes, Missing::EngineSilent),
            count(batch.compared),
        ];
        table.row([view.cells(point), own].concat());
    }
    table
}
