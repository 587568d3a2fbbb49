//! One sample of one bench, by divan itself.

use std::env;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use divan::Divan;

use super::builder::LISTED;

/// No sample takes as long.
const MOST: Duration = Duration::from_secs(24 * 3600);

/// The names of all benches, as divan tells them to a test runner.
///
/// # Errors
/// When this program cannot be started again, or lists none.
pub fn list() -> Result<Vec<String>> {
    let program = env::current_exe().context("this program cannot be found")?;
    let mut command = Command::new(program);
    command.args(["--list", "--format", "terse"]).env("NEXTEST", "1").env(LISTED, "1");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let said = command.output().context("this program cannot be started")?;
    let text = String::from_utf8_lossy(&said.stdout);
    let names: Vec<String> =
        text.lines().filter_map(|line| line.strip_suffix(": benchmark")).map(str::to_owned).collect();
    ensure!(said.status.success(), "the program ended with {} when they were requested", said.status);
    ensure!(!names.is_empty(), "there are none that are not ignored; does main call divan::main()?");
    // One that no name skips would run within the sample of every other.
    let others = printed(|| asked(1, 1, names.iter()).run_benches())?;
    ensure!(
        others.lines().all(|row| iteration_ns(row).is_none()),
        "one is not listed by its own name: it has a line break or changes from run to run, or its group alone is ignored"
    );
    Ok(names)
}

/// Benches that none of `left` names, sampled so often.
fn asked<'n>(samples: u32, iterations: u32, left: impl Iterator<Item = &'n String>) -> Divan {
    let divan = Divan::default().color(false).sample_count(samples).sample_size(iterations);
    // Else a bench's own would add samples, or leave out the one.
    let divan = divan.min_time(Duration::ZERO).max_time(MOST);
    left.fold(divan, |divan, name| divan.skip_exact(name.as_str()))
}

/// A bench of which nothing is left takes no time by divan, which leaves out its own loop. A thousandth of the shortest unit is
/// none either, and can be compared.
const LEAST_NS: f64 = 1e-3;

/// Samples of divan's that make up one of many iterations: divan keeps all that those of a sample make until it ends, and so far
/// fewer of its own.
const PARTS: u32 = 64;

/// A sample with more of all samples' time leaves the others too few of the digits that divan prints.
const MOSTLY_SLOWEST: f64 = 0.9;

/// The digits that divan prints of a time leave so much open.
const DIGITS: f64 = 2e-3;

/// What so many iterations of `name` take; of a bench that runs on several numbers of threads, all of them together. One sample
/// of divan's more is taken and the slowest left out: the first one can fill what the bench's function made.
///
/// # Errors
/// When divan runs nothing of that name, or its table cannot be read.
pub fn time(name: &str, all: &[String], iterations: u64) -> Result<Duration> {
    let iterations = u32::try_from(iterations).unwrap_or(u32::MAX);
    let parts = iterations.clamp(1, PARTS);
    let others = all.iter().filter(|other| *other != name);
    let table = printed(|| asked(parts + 1, iterations.div_ceil(parts), others).run_benches())?;
    let each_ns: Vec<f64> = table.lines().filter_map(iteration_ns).collect();
    ensure!(!each_ns.is_empty(), "it ran nothing");
    let each_ns = each_ns.iter().sum::<f64>().max(LEAST_NS);
    Ok(Duration::from_secs_f64(each_ns * f64::from(iterations) / 1e9))
}

/// What an iteration takes by a row of divan's table that has the number of samples: `╰─ fib  1 µs │ 3 µs │ 2 µs │ 2 µs │ 4 │ 100`.
/// By the mean of all samples but the slowest. Divan prints four digits: of a mean that is mostly the slowest sample nothing is left
/// without it, and then the median counts, or the faster one of two.
fn iteration_ns(row: &str) -> Option<f64> {
    let columns: Vec<&str> = row.split('│').collect();
    // What stands left of the table are branches of the same sign.
    let first = columns.len().checked_sub(6)?;
    let samples: u32 = columns[first + 4].trim().parse().ok()?;
    let (slowest, median, mean) = (ns(columns[first + 1])?, ns(columns[first + 2])?, ns(columns[first + 3])?);
    Some(match samples {
        0 | 1 => mean,
        2 => {
            // What the bench printed can stand before it.
            let rest = (2.0 * mean - slowest).max(0.0);
            ns(columns[first]).filter(|fastest| (fastest - rest).abs() <= DIGITS * slowest).unwrap_or(rest)
        }
        _ if slowest > MOSTLY_SLOWEST * mean * f64::from(samples) => median,
        _ => (mean * f64::from(samples) - slowest) / f64::from(samples - 1),
    })
}

/// A time of divan's, behind a name or alone: `1.234 µs`.
fn ns(column: &str) -> Option<f64> {
    let mut words = column.split_whitespace().rev();
    let (unit, number) = (words.next()?, words.next()?);
    let unit_ns = match unit {
        "ps" => 1e-3,
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * unit_ns)
}

/// What `run` prints. Its errors go nowhere: divan says the precision of its clock each time.
fn printed(run: impl FnOnce()) -> Result<String> {
    let mut file = tempfile::tempfile().context("no temporary file can be made")?;
    let nothing = File::options().write(true).open("/dev/null").context("/dev/null cannot be opened")?;
    {
        let _stdout = Pointed::to(&io::stdout(), &file)?;
        let _stderr = Pointed::to(&io::stderr(), &nothing)?;
        run();
    }
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A standard stream that leads into a file until this is dropped.
struct Pointed {
    descriptor: i32,
    before: OwnedFd,
}

impl Pointed {
    fn to(stream: &impl AsFd, file: &impl AsRawFd) -> io::Result<Self> {
        io::stdout().flush()?;
        let descriptor = stream.as_fd().as_raw_fd();
        let before = stream.as_fd().try_clone_to_owned()?;
        point(descriptor, file)?;
        Ok(Self { descriptor, before })
    }
}

impl Drop for Pointed {
    fn drop(&mut self) {
        let _ = io::stdout().flush();
        let _ = point(self.descriptor, &self.before);
    }
}

fn point(descriptor: i32, to: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: both are open descriptors of this process, and nothing here owns the one that is replaced.
    if unsafe { libc::dup2(to.as_raw_fd(), descriptor) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::iteration_ns;

    #[test]
    fn the_row_of_a_bench_has_its_time() {
        let table = "\
parse          fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ words       1.0 µs        │ 5.0 µs        │ 1.0 µs        │ 2.4 µs        │ 3       │ 300
│              812.1 MB/s    │ 812.1 MB/s    │ 812.1 MB/s    │ 812.1 MB/s    │         │
├─ fills       1.0 µs        │ 1.0 s         │ 1.0 µs        │ 15.38 ms      │ 65      │ 65
├─ stalls      1.0 µs        │ 100 µs        │ 1.0 µs        │ 20.8 µs       │ 65      │ 65
├─ once        1.5 µs        │ 1.0 s         │ 500.0 ms      │ 500.0 ms      │ 2       │ 2
├─ prints      71.0 ms       │ 1.2 ms        │ 1.1 ms        │ 1.1 ms        │ 2       │ 2
╰─ deep                      │               │               │               │         │
   ├─ 10       5 ns          │ 5 ns          │ 5 ns          │ 5 ns          │ 1       │ 7
│  ╰─ 20       1.5 ms        │ 1.5 ms        │ 1.5 ms        │ 1.5 ms        │ 1       │ 7
";
        let found: Vec<f64> = table.lines().filter_map(iteration_ns).collect();
        assert_eq!(found, [1_100.0, 1_000.0, 19_562.5, 1_500.0, 1_000_000.0, 5.0, 1_500_000.0]);
    }
}
