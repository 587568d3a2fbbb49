use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::Tokenizer;

const SYLLABLES: [&str; 12] = ["ka", "lo", "mi", "ne", "ru", "sta", "tor", "ven", "wil", "xan", "yer", "zo"];

/// Words of two to five syllables.
fn text(words: usize) -> String {
    let mut state = 1_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % below) as usize
    };
    let mut text = String::new();
    for at in 0..words {
        let syllables = 2 + draw(4);
        (0..syllables).for_each(|_| text.push_str(SYLLABLES[draw(12)]));
        text.push_str(if at % 9 == 8 { ", " } else { " " });
    }
    text
}

fn wordpiece(c: &mut Criterion) {
    let pieces = SYLLABLES.iter().flat_map(|piece| [(*piece).to_owned(), format!("##{piece}")]);
    let all = ["[UNK]", ","].iter().map(|piece| (*piece).to_owned()).chain(pieces);
    let vocab: ahash::AHashMap<String, u32> = all.zip(0_u32..).collect();
    let model = WordPiece::builder().vocab(vocab).unk_token("[UNK]".into()).build().expect("a model");
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_normalizer(Some(BertNormalizer::default())).expect("a normalizer");
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    let text = text(200);
    c.bench_function("wordpiece", |b| b.iter(|| tokenizer.encode(black_box(text.as_str()), false).expect("tokens")));
}

criterion_group!(benches, wordpiece);
criterion_main!(benches);
