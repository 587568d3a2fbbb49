//! Decoding one short sentence with a vocabulary as large as BERT's.

use criterion::{Criterion, criterion_group, criterion_main};
use tokenizers::Tokenizer;
use tokenizers::decoders::wordpiece::WordPiece as Decoder;
use tokenizers::models::wordpiece::WordPiece;

const WORDS: [&str; 7] = ["brown", "fox", "jumps", "over", "the", "lazy", "dog"];

fn decode(criterion: &mut Criterion) {
    let made_up = (0..30_000).map(|number| format!("##{number}"));
    let vocabulary = WORDS.iter().map(|word| word.to_string()).chain(made_up).zip(0..).collect();
    let mut tokenizer = Tokenizer::new(WordPiece::builder().vocab(vocabulary).build().unwrap());
    tokenizer.with_decoder(Decoder::default());
    let ids: Vec<u32> = (0..WORDS.len() as u32).collect();
    criterion.bench_function("decode", |bench| bench.iter(|| tokenizer.decode(ids.clone(), true).unwrap()));
}

criterion_group!(benches, decode);
criterion_main!(benches);
