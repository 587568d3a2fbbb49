//! Which benches criterion's command line asks for. Criterion keeps its filter to itself, and a model's output must not be
//! verified for a bench that does not run.

use regex::Regex;

/// Flags of criterion that take a value, which therefore is not a filter.
const VALUE_FLAGS: [&str; 20] = [
    "-c",
    "--color",
    "--colour",
    "-s",
    "--save-baseline",
    "-b",
    "--baseline",
    "--baseline-lenient",
    "--format",
    "--profile-time",
    "--load-baseline",
    "--sample-size",
    "--warm-up-time",
    "--measurement-time",
    "--nresamples",
    "--plotting-backend",
    "--output-format",
    "--noise-threshold",
    "--confidence-level",
    "--significance-level",
];

/// What a bench target needs to know of its command line.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    filters: Vec<String>,
    exact: bool,
    /// `--list`: name the benches and run nothing.
    pub list: bool,
    /// `--test`, or `cargo test --benches`: each bench once.
    pub test: bool,
    /// `--load-baseline`: criterion judges stored times and runs nothing.
    pub load_baseline: bool,
}

impl Arguments {
    /// From the arguments after the program's name.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Self {
        let mut parsed = Self::default();
        let mut bench = false;
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--exact" => parsed.exact = true,
                "--list" => parsed.list = true,
                "--test" => parsed.test = true,
                "--bench" => bench = true,
                flag if VALUE_FLAGS.contains(&flag) => {
                    parsed.load_baseline |= flag == "--load-baseline";
                    arguments.next();
                }
                flag if flag.starts_with("--load-baseline=") => parsed.load_baseline = true,
                flag if flag.starts_with('-') => {}
                filter => parsed.filters.push(filter.to_owned()),
            }
        }
        // Criterion's own rule: without --bench it was started by `cargo test`, and runs each bench once.
        parsed.test |= !bench;
        parsed
    }

    /// Whether the bench `id` (`decode/p128`) is asked for, by criterion's rule: a regular expression that matches
    /// anywhere, or the whole id with `--exact`.
    pub fn names(&self, id: &str) -> bool {
        self.filters.iter().all(|filter| {
            if self.exact {
                return filter == id;
            }
            // Criterion reports a filter that is not a regular expression; here it names everything.
            Regex::new(filter).map_or(true, |regex| regex.is_match(id))
        })
    }
}
