//! The report as JSON: the numbers to the last bit, beside what a person reads.

use anyhow::Result;

use super::File;
use crate::receipt::{
    REPORT_SCHEMA, ReportCell, ReportColumn, ReportFigure, ReportFile, ReportFinding, ReportSection, ReportTable,
    ReportVerdict, to_json,
};
use crate::report::inputs::Inputs;
use crate::report::model::{Block, Cell, Finding, Report, Section, Table};

pub fn export(_: &Inputs, report: &Report) -> Result<Vec<File>> {
    Ok(vec![File::new("report.json", to_json(&document(report))?)])
}

pub fn document(report: &Report) -> ReportFile {
    let verdict = report.headline.as_ref().map(|headline| ReportVerdict {
        outcome: headline.outcome,
        exit_code: headline.exit_code,
        why: Some(headline.said.clone()),
    });
    let sections = report.sections.iter().map(section).collect();
    let title = if report.subject.is_empty() { &report.title } else { &report.subject };
    ReportFile { schema: REPORT_SCHEMA.into(), title: title.clone(), verdict, sections }
}

fn section(section: &Section) -> ReportSection {
    let mut said = Vec::new();
    let mut findings = Vec::new();
    for block in &section.blocks {
        match block {
            Block::Said(text) => said.push(text.clone()),
            Block::List(list) => said.extend(list.iter().cloned()),
            Block::Findings(found) => findings.extend(found.iter().map(finding)),
            Block::Table(_) | Block::Chart(_) => {}
        }
    }
    ReportSection {
        id: section.id.into(),
        title: section.title.into(),
        said,
        tables: section.tables().map(table).collect(),
        findings,
        pictures: section.charts().map(|chart| chart.id.clone()).collect(),
    }
}

fn table(table: &Table) -> ReportTable {
    let column = |column: &crate::report::model::Column| ReportColumn {
        id: column.id.into(),
        title: column.title.clone(),
        about: column.about.into(),
    };
    ReportTable {
        id: table.id.clone(),
        title: table.title.clone(),
        columns: table.columns.iter().map(column).collect(),
        rows: table.rows.iter().map(|row| row.cells.iter().map(cell).collect()).collect(),
    }
}

fn cell(cell: &Cell) -> ReportCell {
    let quantity = cell.quantity();
    let ends = quantity.and_then(|quantity| quantity.interval);
    ReportCell {
        text: cell.shown(),
        value: quantity.map(|quantity| quantity.value),
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high),
        unit: quantity.map(|quantity| quantity.unit.name().into()),
        why_missing: cell.why(),
    }
}

fn finding(finding: &Finding) -> ReportFinding {
    let figure = |(name, quantity): &(String, crate::report::model::Quantity)| ReportFigure {
        name: name.clone(),
        value: quantity.value,
        unit: quantity.unit.name().into(),
    };
    ReportFinding {
        tone: finding.tone.name().into(),
        said: finding.said.clone(),
        rests_on: finding.rests_on.iter().map(figure).collect(),
    }
}
