//! Wilcoxon's signed-rank test, exact (Wilcoxon 1945; exact distribution under midranks: Pratt and Gibbons 1981, ch. 3).
//!
//! Under the null hypothesis each difference is symmetric about zero, so that each of the 2^n patterns of signs is equally
//! likely given the magnitudes. Equal magnitudes share their mean rank. A difference of exactly zero keeps its rank and
//! counts against whatever is to be shown.

use super::finite;

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

/// The mirror image: the one-sided p value of "below zero".
pub fn signed_rank_p_below(differences: &[f64]) -> Option<f64> {
    let mirrored: Vec<f64> = differences.iter().map(|d| -d).collect();
    signed_rank_p_above(&mirrored)
}

/// The one-sided upper confidence bound of the location at level `beta`: the largest shift that the test of "below the
/// shift" does not reject (Hollander, Wolfe and Chicken 2014, section 3.3). `None` when even the most extreme signs are
/// not that unlikely (n < log2(1 / beta)), or as [`signed_rank_p_above`].
pub fn signed_rank_upper_bound(differences: &[f64], beta: f64) -> Option<f64> {
    let mirrored: Vec<f64> = differences.iter().map(|d| -d).collect();
    signed_rank_lower_bound(&mirrored, beta).map(|bound| -bound)
}

/// The one-sided lower confidence bound, as [`signed_rank_upper_bound`].
pub fn signed_rank_lower_bound(differences: &[f64], beta: f64) -> Option<f64> {
    if signed_rank_p_above(&vec![1.0; differences.len()])? > beta {
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
    super::median(&walsh_averages(differences)?)
}

/// The means of all pairs of values, each with itself included, ascending: n (n + 1) / 2 of them. `None` without values, or
/// when one is not finite.
pub fn walsh_averages(values: &[f64]) -> Option<Vec<f64>> {
    let values = finite(values)?;
    let mut averages: Vec<f64> =
        values.iter().enumerate().flat_map(|(i, a)| values[i..].iter().map(move |b| a.midpoint(*b))).collect();
    averages.sort_unstable_by(f64::total_cmp);
    Some(averages)
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
fn upper_tail(ranks: &[usize], at_least: usize) -> f64 {
    let mut probability = vec![0.0; ranks.iter().sum::<usize>() + 1];
    probability[0] = 1.0;
    let mut reached = 0;
    for rank in ranks {
        reached += rank;
        for sum in (0..=reached).rev() {
            let with = if sum >= *rank { probability[sum - rank] } else { 0.0 };
            probability[sum] = 0.5 * (probability[sum] + with);
        }
    }
    probability[at_least..].iter().sum()
}
