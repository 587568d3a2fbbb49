//! Wilcoxon's signed-rank test, exact (Wilcoxon 1945; exact distribution under midranks: Pratt and Gibbons 1981, ch. 3).
//!
//! Under the null hypothesis each difference is symmetric about zero, so that each of the 2^n patterns of signs is equally
//! likely given the magnitudes. Equal magnitudes share their mean rank. A difference of exactly zero keeps its rank and
//! counts against whatever is to be shown.

use crate::stats::finite;

/// The most values the exact distribution is computed for; probabilities are exact multiples of 2^-n up to there.
pub const MAX_SIGNED_RANKS: usize = 50;

/// P of a sum of positive ranks at least as large as that of `differences`, had they no location above zero: the
/// one-sided p value of "above zero". `None` without values, above [`MAX_SIGNED_RANKS`], or when one is not finite.
pub fn signed_rank_p_above(differences: &[f64]) -> Option<f64> {
    let differences = finite(differences)?;
    if differences.len() > MAX_SIGNED_RANKS {
        return None;
    }
    let ranks = doubled_midranks(differences);
    let positive: usize = differences.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank).sum();
    Some(upper_tail(&ranks, positive))
}

/// The one-sided upper confidence bound of the location at level `beta`: the largest shift that the test of "below the
/// shift" does not reject (Hollander, Wolfe and Chicken 2014, section 3.3). `None` when even the most extreme signs are
/// not that unlikely (n < log2(1 / beta)), for a level outside (0, 1), or as [`signed_rank_p_above`].
pub fn signed_rank_upper_bound(differences: &[f64], beta: f64) -> Option<f64> {
    let mirrored: Vec<f64> = differences.iter().map(|d| -d).collect();
    signed_rank_lower_bound(&mirrored, beta).map(|bound| -bound)
}

/// The one-sided lower confidence bound, as [`signed_rank_upper_bound`].
pub fn signed_rank_lower_bound(differences: &[f64], beta: f64) -> Option<f64> {
    let n = finite(differences)?.len();
    // With all signs alike p is 2^-n, and no sample gives less.
    if n > MAX_SIGNED_RANKS || !(beta > 0.0 && beta < 1.0) || 0.5_f64.powi(n as i32) > beta {
        return None;
    }
    let mut averages = walsh_averages(differences)?;
    averages.dedup();
    let rejects = |gap: &[f64]| {
        let shift = gap[0].midpoint(gap[1]);
        let shifted: Vec<f64> = differences.iter().map(|d| d - shift).collect();
        signed_rank_p_above(&shifted).is_some_and(|p| p <= beta)
    };
    // Between two neighbouring Walsh averages the statistic does not change, and from one gap to the next it falls.
    let gaps: Vec<&[f64]> = averages.windows(2).collect();
    Some(averages[gaps.partition_point(|gap| rejects(gap))])
}

/// The location estimate of Hodges and Lehmann (1963): the median of the [Walsh averages](walsh_averages). `None` without
/// values, or when one is not finite.
pub fn hodges_lehmann(differences: &[f64]) -> Option<f64> {
    crate::stats::median(&averages(differences)?)
}

/// The means of all pairs of values, each with itself included, ascending: n (n + 1) / 2 of them. `None` without values, or
/// when one is not finite.
pub fn walsh_averages(values: &[f64]) -> Option<Vec<f64>> {
    let mut averages = averages(values)?;
    averages.sort_unstable_by(f64::total_cmp);
    Some(averages)
}

fn averages(values: &[f64]) -> Option<Vec<f64>> {
    let values = finite(values)?;
    Some(values.iter().enumerate().flat_map(|(i, a)| values[i..].iter().map(move |b| a.midpoint(*b))).collect())
}

/// Twice the midrank of each magnitude, so that the mean of two neighbouring ranks is a whole number too.
fn doubled_midranks(differences: &[f64]) -> Vec<usize> {
    let magnitude = |d: &f64| d.abs();
    let doubled = |d: &f64| {
        let below = differences.iter().filter(|other| magnitude(other) < magnitude(d)).count();
        let equal = differences.iter().filter(|other| magnitude(other) == magnitude(d)).count();
        // Ranks below + 1 ..= below + equal; their mean is below + (equal + 1) / 2.
        2 * below + equal + 1
    };
    differences.iter().map(doubled).collect()
}

/// P(sum of the ranks with a positive sign >= `at_least`), each sign positive with probability one half.
///
/// Counts patterns of signs in whichever tail is shorter, the distribution being symmetric; counts are exact below 2^53.
fn upper_tail(ranks: &[usize], at_least: usize) -> f64 {
    if at_least == 0 {
        return 1.0;
    }
    let total: usize = ranks.iter().sum();
    let (above, below) = (total - at_least, at_least - 1);
    let most = above.min(below);
    let mut patterns = vec![0.0; most + 1];
    patterns[0] = 1.0;
    for &rank in ranks {
        for sum in (rank..=most).rev() {
            patterns[sum] += patterns[sum - rank];
        }
    }
    let tail = patterns.iter().sum::<f64>() * 0.5_f64.powi(ranks.len() as i32);
    if above <= below { tail } else { 1.0 - tail }
}
