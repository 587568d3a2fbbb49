//! Which part of a load this client does, and when all of them begin: from flags, or from what Slurm and Kubernetes say.

use std::env;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};

use super::flags::Shards;
use infergate_load::plan::shard::Shard;

/// The number of shards of a Kubernetes Job, which tells a pod its index alone. The Job's file sets it.
const COUNT: &str = "INFERGATE_SHARDS";
/// A pod's index in its Job.
const INDEX: &str = "JOB_COMPLETION_INDEX";
/// A Slurm task's number, and how the array is numbered.
const TASK: &str = "SLURM_ARRAY_TASK_ID";
const TASK_MIN: &str = "SLURM_ARRAY_TASK_MIN";
const TASK_STEP: &str = "SLURM_ARRAY_TASK_STEP";
const TASKS: &str = "SLURM_ARRAY_TASK_COUNT";

/// A part of a load with the time it begins at.
#[derive(Debug, Clone, Copy)]
pub struct Begin {
    /// Which part; the whole where nothing says otherwise.
    pub shard: Shard,
    /// When, nanoseconds since 1970 in UTC; `None`: at once.
    pub start_unix_ns: Option<u64>,
}

/// What the flags say, else, with `--start-at`, the environment. Without a common start there are no shards, so a variable that is
/// there by chance makes no load smaller.
pub fn from(asked: &Shards) -> Result<Begin> {
    let Some(text) = &asked.start_at else {
        return Ok(Begin { shard: Shard::WHOLE, start_unix_ns: None });
    };
    let start_unix_ns = time(text).with_context(|| format!("--start-at {text}"))?;
    let now_ns = unix_ns(SystemTime::now())?;
    let late = Duration::from_nanos(now_ns.saturating_sub(start_unix_ns));
    ensure!(
        late.is_zero(),
        "--start-at {text}: that was {} ago; give a time that every shard can reach, for example in two minutes",
        humantime::format_duration(Duration::from_secs(late.as_secs().max(1)))
    );
    let shard = match &asked.shard {
        Some(text) => text.parse().context("--shard")?,
        None => of_environment(|name| env::var(name).ok())?.unwrap_or(Shard::WHOLE),
    };
    Ok(Begin { shard, start_unix_ns: Some(start_unix_ns) })
}

pub fn unix_ns(time: SystemTime) -> Result<u64> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).context("the clock stands before 1970; set it")?;
    u64::try_from(since.as_nanos()).context("a time beyond the year 2554")
}

/// `2026-01-31T12:00:00Z`, or seconds since 1970 with or without a fraction.
fn time(text: &str) -> Result<u64> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds {
        // Whole seconds do not go through a float, where they would lose their nanoseconds.
        Some(since) => {
            let whole = text.parse::<u64>().map_or(since, Duration::from_secs);
            u64::try_from(whole.as_nanos()).context("is beyond the year 2554")
        }
        None => {
            let time = humantime::parse_rfc3339(text).ok();
            unix_ns(time.context("write a time in UTC as 2026-01-31T12:00:00Z, or as seconds since 1970")?)
        }
    }
}

/// The shard that the variables name; `None` where there is none of them.
fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Shard>> {
    let number = |name: &str| -> Result<Option<u32>> {
        let Some(text) = variable(name) else { return Ok(None) };
        let number = text.trim().parse().ok();
        number.map(Some).with_context(|| format!("{name}={text}: is no number; give --shard K/N"))
    };
    let pod = match (number(INDEX)?, number(COUNT)?) {
        (None, None) => None,
        (Some(index), Some(count)) => {
            let shard = Shard::new(index, count).with_context(|| format!("{INDEX}={index}, {COUNT}={count}"))?;
            Some(shard)
        }
        (Some(_), None) => {
            bail!(
                "{INDEX} is set and {COUNT} is not; set it to the number of completions of the Job, or give --shard K/N"
            )
        }
        (None, Some(_)) => bail!("{COUNT} is set and {INDEX} is not; use an Indexed Job, or give --shard K/N"),
    };
    let task = match (number(TASK)?, number(TASK_MIN)?, number(TASKS)?) {
        (None, _, _) => None,
        (Some(id), Some(min), Some(count)) => {
            let step = number(TASK_STEP)?.unwrap_or(1).max(1);
            let place = id.checked_sub(min).filter(|place| place % step == 0).map(|place| place / step);
            let shard = place.and_then(|index| Shard::new(index, count).ok());
            Some(shard.with_context(|| {
                format!(
                    "{TASK}={id}: is none of {count} tasks from {min} in steps of {step}; number the array without gaps, as 0-{}, \
                     or give --shard K/N",
                    count.saturating_sub(1)
                )
            })?)
        }
        (Some(_), _, _) => bail!("{TASK} is set, and {TASK_MIN} or {TASKS} is not; give --shard K/N"),
    };
    ensure!(pod.is_none() || task.is_none(), "{INDEX} and {TASK} are both set; say which shard this is by --shard K/N");
    Ok(pod.or(task))
}
