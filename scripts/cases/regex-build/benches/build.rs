//! Patterns of a firewall's rules, built as bytes.

use criterion::{Criterion, criterion_group, criterion_main};
use regex::bytes::{Regex, RegexBuilder};

const PATTERNS: [(&str, &str); 2] = [
    ("short", r"![!+ ]\[\]"),
    (
        "words",
        r"(?i:(?:(?:and|n?or|not|like|between|union|x?xor|&&|\|\|)\s+\w+\(|\)\s*when\s*\d+\s*then|\b(?:char|sleep)\s*\(\s*\d|/\*!\s?\d+))",
    ),
];

fn build(criterion: &mut Criterion) {
    for (name, pattern) in PATTERNS {
        criterion.bench_function(name, |bench| {
            bench.iter(|| -> Regex { RegexBuilder::new(pattern).unicode(false).build().unwrap() })
        });
    }
}

criterion_group!(benches, build);
criterion_main!(benches);
