//! A small plot of values over time, for a terminal.

use std::fmt::Write as _;

/// Lines of the plot.
const HEIGHT: usize = 6;
/// A column of eighths of a line.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The values as columns, from zero or the least value up, with the scale beside them.
pub fn plot(values: &[f64], seconds: f64, unit: &str) -> String {
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    let least = values.iter().copied().fold(0.0, f64::min);
    let span = if most > least { most - least } else { 1.0 };
    let mut lines = String::new();
    for line in (0..HEIGHT).rev() {
        let scale = match line {
            _ if line + 1 == HEIGHT => figures(most, 2),
            0 => figures(least, 2),
            _ => String::new(),
        };
        let _ = write!(lines, "{scale:>9} |");
        for value in values {
            let eighths = (value - least) / span * (HEIGHT * 8) as f64 - (line * 8) as f64;
            lines.push(EIGHTHS[eighths.round().clamp(0.0, 8.0) as usize]);
        }
        lines.push('\n');
    }
    let end = format!("{seconds:.1} s");
    let room = values.len().saturating_sub(end.len() + 1);
    let _ = write!(lines, "{unit:>9}  0{:room$}{end}", "");
    lines
}

/// A number with so many decimals, or with as many more as four figures need.
pub fn figures(value: f64, decimals: usize) -> String {
    let first = value.abs().log10().floor();
    let more = if first.is_finite() { (3.0 - first).clamp(0.0, 12.0) as usize } else { 0 };
    let decimals = if first < 0.0 { decimals.max(more) } else { decimals };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_have_four_figures_too() {
        for (value, shown) in [
            (0.0, "0.000"),
            (12_345.678_9, "12345.679"),
            (1.5, "1.500"),
            (0.5, "0.5000"),
            (0.038_489_1, "0.03849"),
            (0.000_154_12, "0.0001541"),
            (-0.012_345, "-0.01235"),
        ] {
            assert_eq!(figures(value, 3), shown);
        }
    }

    #[test]
    fn a_plot_has_the_largest_value_at_its_top() {
        let lines = plot(&[0.0, 2.0, 4.0, 1.0, 0.0, 0.0, 0.0, 0.0], 8.0, "Mbit/s");
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines[0], "     4.00 |  █     ");
        assert_eq!(lines[3], "          | ██     ");
        assert_eq!(lines[4], "          | ██▄    ");
        assert_eq!(lines[5], "     0.00 | ███    ");
        assert_eq!(lines[6], "   Mbit/s  0  8.0 s");
    }
}
