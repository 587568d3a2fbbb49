//! A number of bytes, as a person reads it.

/// In the unit that leaves three digits: `4.00 KiB`, `475 MiB`. Of few bytes also a part of one: `0.3 B`.
pub fn size(bytes: f64) -> String {
    let (mut value, mut unit) = (bytes, "B");
    for larger in ["KiB", "MiB", "GiB"] {
        if value.abs() < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    let whole = unit == "B" && (value.fract() == 0.0 || value.abs() >= 10.0 || value.abs() < 0.005);
    let digits = match value.abs() {
        _ if whole => 0,
        value if unit == "B" && value >= 0.1 => 1,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    // No zero has a sign.
    let value = if whole && value.abs() < 0.5 { 0.0 } else { value };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn bytes_leave_three_digits_and_no_zero_has_a_sign() {
        for (bytes, text) in [
            (0.0, "0 B"),
            (-0.001, "0 B"),
            (0.05, "0.05 B"),
            (2.5, "2.5 B"),
            (64.0, "64 B"),
            (542.4, "542 B"),
            (-2048.0, "-2.00 KiB"),
            (20480.0, "20.0 KiB"),
            (498_073_600.0, "475 MiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
