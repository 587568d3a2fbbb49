//! Sums and products on plain slices, in loops that the compiler vectorises. The product of weights with one vector is bound by
//! memory, with many by arithmetic.
//!
//! A number gets the same terms in the same order, rounded alike, whether its vector is alone or one of many: what a sequence
//! says does not depend on its company, to the last bit.

/// Partial sums that are kept apart, so that they fill vector registers.
const LANES: usize = 16;
/// Rows of weights that are used up before the sums are stored again.
const ROWS: usize = 4;
/// Columns that are finished for all vectors before the next: so many of [`ROWS`] rows, and of the sums of two vectors, stay
/// in the first cache.
const COLUMNS: usize = 512;

/// `a * b + c`, rounded once where that is an instruction; elsewhere it would be a call.
#[inline(always)]
pub fn fused(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) { a.mul_add(b, c) } else { a * b + c }
}

pub fn add(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

/// The sum of `term` over `x`.
pub fn sum(x: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    for x in x.chunks_exact(LANES) {
        for (lane, x) in lanes.iter_mut().zip(x) {
            *lane += term(*x);
        }
    }
    fold(lanes) + x.chunks_exact(LANES).remainder().iter().map(|x| term(*x)).sum::<f32>()
}

/// Halves upon halves: one after the other they would wait for each other.
fn fold(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        let (low, high) = lanes.split_at_mut(width);
        add(low, &high[..width]);
        width /= 2;
    }
    lanes[0]
}

pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks(), b.as_chunks());
    let mut lanes = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        add_products_of(a, b, &mut lanes);
    }
    end_of_dot(lanes, a_rest, b_rest)
}

#[inline(always)]
fn add_products_of(a: &[f32; LANES], b: &[f32; LANES], lanes: &mut [f32; LANES]) {
    for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
        *lane = fused(*a, *b, *lane);
    }
}

fn end_of_dot(lanes: [f32; LANES], a_rest: &[f32], b_rest: &[f32]) -> f32 {
    fold(lanes) + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

/// The dot products of each row of `rows` with each of `xs`, appended to the vector's list in `dots`.
pub fn dots(rows: &[f32], xs: &[&[f32]], dots: &mut [Vec<f32>]) {
    let Some(n) = xs.first().map(|x| x.len()).filter(|n| *n > 0) else { return };
    for group in rows.chunks(ROWS * n) {
        for (x, dots) in xs.iter().zip(dots.iter_mut()) {
            match four_rows(group, n) {
                Some(rows) => dots.extend(four_dots(rows, x)),
                None => dots.extend(group.chunks_exact(n).map(|row| dot(row, x))),
            }
        }
    }
}

/// Each as [`dot`]; `x` is read once for all four.
fn four_dots(rows: [&[f32]; ROWS], x: &[f32]) -> [f32; ROWS] {
    let (x, x_rest) = x.as_chunks();
    let [(r0, rest0), (r1, rest1), (r2, rest2), (r3, rest3)] = rows.map(|row| row.as_chunks());
    let [mut l0, mut l1, mut l2, mut l3] = [[0.0; LANES]; ROWS];
    for ((((x, r0), r1), r2), r3) in x.iter().zip(r0).zip(r1).zip(r2).zip(r3) {
        add_products_of(r0, x, &mut l0);
        add_products_of(r1, x, &mut l1);
        add_products_of(r2, x, &mut l2);
        add_products_of(r3, x, &mut l3);
    }
    let ends = [(l0, rest0), (l1, rest1), (l2, rest2), (l3, rest3)];
    ends.map(|(lanes, rest)| end_of_dot(lanes, rest, x_rest))
}

/// `out += x W`, W row by row: one stream through memory, as long as the whole matrix.
pub fn add_product(x: &[f32], weight: &[f32], out: &mut [f32]) {
    for (x, row) in x.iter().zip(weight.chunks_exact(out.len())) {
        for (out, w) in out.iter_mut().zip(row) {
            *out = fused(*x, *w, *out);
        }
    }
}

/// As [`add_product`] for every pair of `x` and `out`, W read once.
pub fn add_products(weight: &[f32], pairs: &mut [(&[f32], &mut [f32])]) {
    // Alone it is bound by memory, which gives a single stream faster than tiles.
    if let [(x, out)] = pairs {
        return add_product(x, weight, out);
    }
    let Some(n) = pairs.first().map(|(_, out)| out.len()).filter(|n| *n > 0) else { return };
    for (group, rows) in weight.chunks(ROWS * n).enumerate() {
        let first = group * ROWS;
        let Some(rows) = four_rows(rows, n) else {
            for (x, out) in pairs.iter_mut() {
                add_product(&x[first..], rows, out);
            }
            continue;
        };
        for from in (0..n).step_by(COLUMNS) {
            let columns = from..(from + COLUMNS).min(n);
            let rows = rows.map(|row| &row[columns.clone()]);
            let (twos, last) = pairs.as_chunks_mut();
            for [(a, a_out), (b, b_out)] in twos {
                let outs = (&mut a_out[columns.clone()], &mut b_out[columns.clone()]);
                add_rows_to_two(rows, (factors(a, first), factors(b, first)), outs);
            }
            for (x, out) in last {
                add_rows(rows, factors(x, first), &mut out[columns.clone()]);
            }
        }
    }
}

/// A group of rows, if it is a whole one.
fn four_rows(group: &[f32], n: usize) -> Option<[&[f32]; ROWS]> {
    let mut rows = group.chunks_exact(n);
    let rows = [rows.next()?, rows.next()?, rows.next()?, rows.next()?];
    Some(rows)
}

/// What the rows of a group are multiplied by.
fn factors(x: &[f32], first: usize) -> [f32; ROWS] {
    [x[first], x[first + 1], x[first + 2], x[first + 3]]
}

fn add_rows([w0, w1, w2, w3]: [&[f32]; ROWS], x: [f32; ROWS], out: &mut [f32]) {
    for ((((out, w0), w1), w2), w3) in out.iter_mut().zip(w0).zip(w1).zip(w2).zip(w3) {
        *out = add_column(x, [*w0, *w1, *w2, *w3], *out);
    }
}

/// As [`add_rows`] for two vectors: with each number of W that is loaded twice as much is done.
fn add_rows_to_two(
    [w0, w1, w2, w3]: [&[f32]; ROWS],
    (a, b): ([f32; ROWS], [f32; ROWS]),
    (a_out, b_out): (&mut [f32], &mut [f32]),
) {
    for (((((a_out, b_out), w0), w1), w2), w3) in a_out.iter_mut().zip(b_out).zip(w0).zip(w1).zip(w2).zip(w3) {
        let column = [*w0, *w1, *w2, *w3];
        *a_out = add_column(a, column, *a_out);
        *b_out = add_column(b, column, *b_out);
    }
}

/// One term after the other, as if each row were added by itself.
#[inline(always)]
fn add_column(x: [f32; ROWS], column: [f32; ROWS], out: f32) -> f32 {
    x.into_iter().zip(column).fold(out, |out, (x, w)| fused(x, w, out))
}
