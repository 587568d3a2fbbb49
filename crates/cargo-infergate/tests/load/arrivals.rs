//! Schedules of an open loop.

use cargo_infergate::load::arrivals::Starts;
use infergate::load::Spacing;
use infergate::stats::{coefficient_of_variation, mean};

fn gaps(spacing: Spacing, seed: u64) -> Vec<f64> {
    let starts: Vec<u64> = Starts::new(50.0, spacing, seed).take(20_001).collect();
    assert_eq!(starts[0], 0);
    assert!(starts.is_sorted());
    starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect()
}

#[test]
fn each_spacing_has_its_mean_and_its_spread() {
    let kinds = [
        (Spacing::Constant, 0.0),
        (Spacing::Poisson, 1.0),
        (Spacing::Gamma { shape: 1.0 }, 1.0),
        (Spacing::Gamma { shape: 4.0 }, 0.5),
        (Spacing::Gamma { shape: 0.25 }, 2.0),
    ];
    for (spacing, spread) in kinds {
        let gaps = gaps(spacing, 3);
        let mean = mean(&gaps).expect("a mean");
        assert!((mean / 20e6 - 1.0).abs() < 0.05, "{spacing:?}: {mean}");
        let found = coefficient_of_variation(&gaps).expect("a spread");
        assert!((found - spread).abs() < 0.05 * spread.max(0.01), "{spacing:?}: {found}");
    }
}

#[test]
fn a_seed_gives_one_schedule() {
    assert_eq!(gaps(Spacing::Poisson, 3), gaps(Spacing::Poisson, 3));
    assert_ne!(gaps(Spacing::Poisson, 3), gaps(Spacing::Poisson, 4));
}
