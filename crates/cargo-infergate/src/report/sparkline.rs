//! A series as a line of blocks.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// `values` in at most `width` blocks, each the largest of its share of the series. From bottom to top is at least `least_span`,
/// so that noise does not look like a mountain.
pub fn sparkline(values: &[u64], width: usize, least_span: u64) -> String {
    let Some(low) = values.iter().min().copied() else { return String::new() };
    let span = (values.iter().max().copied().unwrap_or(low) - low).max(least_span).max(1);
    let blocks = values.len().min(width.max(1));
    let share = |block: usize| {
        let (from, to) = (block * values.len() / blocks, (block + 1) * values.len() / blocks);
        let largest = values[from..to].iter().max().copied().unwrap_or(low);
        let level = u128::from(largest - low) * (BLOCKS.len() as u128 - 1) / u128::from(span);
        BLOCKS[usize::try_from(level).unwrap_or(0).min(BLOCKS.len() - 1)]
    };
    (0..blocks).map(share).collect()
}
