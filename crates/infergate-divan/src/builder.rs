//! [`Divan`]: divan's own under `cargo bench`, a worker under the gate, which decides itself how it measures.

use std::env;
use std::time::Duration;

use divan::counter::{BytesCount, BytesFormat, CharsCount, CyclesCount, IntoCounter, ItemsCount};

/// Set where a worker starts its own program to hear which benches there are.
pub(crate) const LISTED: &str = "INFERGATE_LISTED";

/// As divan's [`Divan`](divan::Divan).
#[derive(Debug, Default)]
pub struct Divan(divan::Divan);

impl Divan {
    /// As divan's.
    #[must_use]
    pub fn from_args() -> Self {
        Self::default().config_with_args()
    }

    /// As divan's; a worker's arguments are none of divan's.
    #[must_use]
    pub fn config_with_args(self) -> Self {
        if infergate::criterion::__is_worker() { self } else { Self(self.0.config_with_args()) }
    }

    /// Does what the arguments say.
    pub fn main(&self) {
        self.run(divan::Divan::main);
    }

    /// Runs the benches, whatever the arguments say.
    pub fn run_benches(&self) {
        self.run(divan::Divan::run_benches);
    }

    fn run(&self, by_divan: fn(&divan::Divan)) {
        if infergate::criterion::__is_worker() {
            super::work();
        } else if env::var_os(LISTED).is_some() {
            divan::main();
        } else {
            by_divan(&self.0);
        }
    }

    /// As divan's.
    pub fn test_benches(&self) {
        self.0.test_benches();
    }

    /// As divan's.
    pub fn list_benches(&self) {
        self.0.list_benches();
    }
}

macro_rules! settings {
    ($($name:ident($($argument:ident: $type:ty)?);)*) => {
        impl Divan {
            $(
                /// As divan's.
                #[must_use]
                pub fn $name(self $(, $argument: $type)?) -> Self {
                    Self(self.0.$name($($argument)?))
                }
            )*
        }
    };
}

settings! {
    color(yes: impl Into<Option<bool>>);
    run_ignored();
    run_only_ignored();
    skip_regex(filter: &str);
    skip_exact(filter: impl Into<String>);
    sample_count(count: u32);
    sample_size(count: u32);
    threads(threads: impl IntoIterator<Item = usize>);
    min_time(time: Duration);
    max_time(time: Duration);
    skip_ext_time(skip: bool);
    counter(counter: impl IntoCounter);
    items_count(count: impl Into<ItemsCount>);
    bytes_count(count: impl Into<BytesCount>);
    bytes_format(format: BytesFormat);
    chars_count(count: impl Into<CharsCount>);
    cycles_count(count: impl Into<CyclesCount>);
}
