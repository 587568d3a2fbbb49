use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn text(words: usize) -> String {
    let mut state = 1_u64;
    let mut text = String::new();
    for at in 0..words {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        text.push_str(&format!("w{}", (state >> 33) % 5000));
        text.push(if at % 12 == 11 { '\n' } else { ' ' });
    }
    text
}

fn five(c: &mut Criterion) {
    let short = text(18);
    let line = (0..60).map(|n| (n * 7919).to_string()).collect::<Vec<_>>().join(", ");
    let values: Vec<u32> = (0..4000_u32).map(|n| n.wrapping_mul(2654435761)).collect();
    let page = text(20_000);
    let book = text(180_000);
    c.bench_function("hash", |b| b.iter(|| own::hash(black_box(short.as_bytes()))));
    c.bench_function("numbers", |b| b.iter(|| own::numbers(black_box(&line))));
    c.bench_function("sorted", |b| b.iter(|| own::sorted(black_box(&values))));
    c.bench_function("words", |b| b.iter(|| own::words(black_box(&page))));
    c.bench_function("scan", |b| b.iter(|| own::scan(black_box(book.as_bytes()))));
}

criterion_group!(benches, five);
criterion_main!(benches);
