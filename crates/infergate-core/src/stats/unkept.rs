//! The median of more numbers than may be kept: they are made anew for each look at them.

use super::median;

/// So many are kept at most. All pairs of ten thousand runs, which a file may have, would take 400 MB.
const KEPT: usize = 1 << 20;
/// As many tell where the middle is about.
const SAMPLE: usize = 1 << 12;

/// The median of the `count` numbers that `numbers` gives, the same ones each time. `None` without any, or when one is not finite.
pub fn median_of<I: Iterator<Item = f64>>(count: usize, numbers: impl Fn() -> I) -> Option<f64> {
    if count <= KEPT {
        return median(&numbers().collect::<Vec<f64>>());
    }
    if !numbers().all(f64::is_finite) {
        return None;
    }
    median(&[nth(count, &numbers, (count - 1) / 2), nth(count, &numbers, count / 2)])
}

/// The number that has `place` others before it in order.
fn nth<I: Iterator<Item = f64>>(count: usize, numbers: &impl Fn() -> I, place: usize) -> f64 {
    let keys = || numbers().map(key);
    let within = |first: u64, last: u64| keys().filter(|key| (first..=last).contains(key)).count();
    let mut sample: Vec<u64> = keys().step_by(count / SAMPLE).collect();
    sample.sort_unstable();
    let at = |percent: usize| sample[sample.len() * percent / 100];
    let (mut first, mut last) = (at(46), at(54));
    let mut below = first.checked_sub(1).map_or(0, |before| within(0, before));
    let mut inside = within(first, last);
    if !(below..below + inside).contains(&place) {
        (first, last, below, inside) = (0, u64::MAX, 0, count);
    }
    while inside > KEPT && first < last {
        let middle = first + (last - first) / 2;
        let lower = within(first, middle);
        if place < below + lower {
            (last, inside) = (middle, lower);
        } else {
            (first, below, inside) = (middle + 1, below + lower, inside - lower);
        }
    }
    if first == last {
        return number(first);
    }
    let mut kept = Vec::with_capacity(inside);
    kept.extend(keys().filter(|key| (first..=last).contains(key)));
    number(*kept.select_nth_unstable(place - below).1)
}

/// A whole number in whose order the finite numbers are.
fn key(number: f64) -> u64 {
    let bits = number.to_bits();
    if number.is_sign_negative() { !bits } else { bits | SIGN }
}

/// The number of such a key.
fn number(key: u64) -> f64 {
    f64::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
}

const SIGN: u64 = 1 << 63;
