//! What is measured: a [`Case`], its id, and the grid of cases.

mod bench_name;

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};

use crate::sha256::WORDS;

pub use bench_name::BenchName;

/// What stands in front of a bench's name where it is written into a file: ours and theirs may be spelled alike.
const BENCH_PREFIX: &str = "bench:";

/// One thing to time: a request to an engine in exact token counts, or a bench of somebody's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Case {
    /// `prefill/pP`: P prompt tokens into an empty KV cache, up to the first token.
    Prefill {
        /// P
        prompt_tokens: usize,
    },
    /// `decode/pP`: one step at context P.
    Decode {
        /// P
        prompt_tokens: usize,
    },
    /// `generate/pP-oN`: P prompt tokens, exactly N output tokens, end-of-sequence ignored, greedy.
    Generate {
        /// P
        prompt_tokens: usize,
        /// N
        output_tokens: usize,
    },
    /// One iteration of a bench, for example one of criterion's, named as criterion names it: `fib/20`.
    Bench(BenchName),
}

/// The criterion group and report section a case belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Prompt to first token.
    Prefill,
    /// One step.
    Decode,
    /// Prompt to last token.
    Generate,
    /// A bench of somebody's own, which may be anything.
    Bench,
}

impl Phase {
    /// Its name, as ids and criterion groups spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Generate => "generate",
            Self::Bench => "bench",
        }
    }
}

impl Case {
    /// The phase this case measures.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Prefill { .. } => Phase::Prefill,
            Self::Decode { .. } => Phase::Decode,
            Self::Generate { .. } => Phase::Generate,
            Self::Bench(_) => Phase::Bench,
        }
    }

    /// P, the prompt's tokens; none for a bench.
    pub fn prompt_tokens(&self) -> usize {
        match *self {
            Self::Prefill { prompt_tokens } | Self::Decode { prompt_tokens } | Self::Generate { prompt_tokens, .. } => {
                prompt_tokens
            }
            Self::Bench(_) => 0,
        }
    }

    /// Output tokens of one iteration: 1 for prefill, 2 for decode (the prompt's and the timed step's), N for generate, none
    /// for a bench.
    pub fn output_tokens(&self) -> usize {
        match *self {
            Self::Prefill { .. } => 1,
            Self::Decode { .. } => 2,
            Self::Generate { output_tokens, .. } => output_tokens,
            Self::Bench(_) => 0,
        }
    }

    /// Whether an output can have so many ids: one for each output token, or for a bench the words of what it returned, if
    /// it returned anything; a server's bench returns several texts.
    pub fn can_have_ids(&self, ids: usize) -> bool {
        match self {
            Self::Bench(_) => ids % WORDS == 0,
            _ => ids == self.output_tokens(),
        }
    }

    /// Times in one sample: one for each token of a generation, else one.
    pub fn times_in_sample(&self) -> usize {
        if self.phase() == Phase::Generate { self.output_tokens() } else { 1 }
    }

    /// How files and the worker's protocol spell it: as it is displayed, a bench with `bench:` in front.
    pub fn id(&self) -> String {
        match self {
            Self::Bench(name) => format!("{BENCH_PREFIX}{name}"),
            _ => self.to_string(),
        }
    }

    /// The id without its phase: `p128`, `p128-o64`.
    pub fn parameter(&self) -> String {
        match *self {
            Self::Prefill { prompt_tokens } | Self::Decode { prompt_tokens } => format!("p{prompt_tokens}"),
            Self::Generate { prompt_tokens, output_tokens } => format!("p{prompt_tokens}-o{output_tokens}"),
            Self::Bench(name) => name.to_string(),
        }
    }

    /// Refuses a case that exceeds the model's context, before anything runs.
    ///
    /// # Errors
    /// When P + output tokens is above `context_tokens`.
    pub fn ensure_fits(&self, context_tokens: usize) -> Result<()> {
        let needed = self.prompt_tokens().saturating_add(self.output_tokens());
        ensure!(
            needed <= context_tokens,
            "{self} needs {needed} tokens and the model's context has {context_tokens}; choose a shorter prompt or fewer output tokens"
        );
        Ok(())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bench(name) => name.fmt(f),
            _ => write!(f, "{}/{}", self.phase().name(), self.parameter()),
        }
    }
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(id: &str) -> Result<Self> {
        if let Some(name) = id.strip_prefix(BENCH_PREFIX) {
            return Ok(Self::Bench(BenchName::new(name)?));
        }
        let Some(case) = parse(id) else {
            bail!("'{id}' is not a case id; write prefill/p128, decode/p128 or generate/p128-o64");
        };
        ensure!(
            case.prompt_tokens() > 0 && case.output_tokens() > 0,
            "case '{id}' has zero tokens, which cannot be measured; give at least one"
        );
        Ok(case)
    }
}

fn parse(id: &str) -> Option<Case> {
    let (phase, parameter) = id.split_once('/')?;
    let parameter = parameter.strip_prefix('p')?;
    let number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    match phase {
        "prefill" => Some(Case::Prefill { prompt_tokens: number(parameter)? }),
        "decode" => Some(Case::Decode { prompt_tokens: number(parameter)? }),
        "generate" => {
            let (prompt, output) = parameter.split_once("-o")?;
            Some(Case::Generate { prompt_tokens: number(prompt)?, output_tokens: number(output)? })
        }
        _ => None,
    }
}

crate::serde_as_text!(Case, Case::id);

/// The gate's default suite: five cases, one metric each. More cases cost time and level.
pub fn gate_suite() -> Vec<Case> {
    vec![
        Case::Prefill { prompt_tokens: 128 },
        Case::Prefill { prompt_tokens: 512 },
        Case::Decode { prompt_tokens: 128 },
        Case::Decode { prompt_tokens: 512 },
        Case::Generate { prompt_tokens: 128, output_tokens: 64 },
    ]
}

/// The default grid of `cargo bench` for a model with this context: the generation of 1024 to 256 takes the place of
/// 768 to 256 where it fits.
pub fn full_grid(context_tokens: usize) -> Vec<Case> {
    let prompts = [128, 512, 768];
    let long = if context_tokens >= 1280 { 1024 } else { 768 };
    let generations = [(128, 64), (512, 128), (long, 256)];
    let prefills = prompts.iter().map(|&prompt_tokens| Case::Prefill { prompt_tokens });
    let decodes = prompts.iter().map(|&prompt_tokens| Case::Decode { prompt_tokens });
    let generates =
        generations.iter().map(|&(prompt_tokens, output_tokens)| Case::Generate { prompt_tokens, output_tokens });
    prefills.chain(decodes).chain(generates).collect()
}

/// The cases of `from` that any of `patterns` names: a case id or a glob such as `decode/*`. A pattern that is a valid
/// id outside `from` adds that case.
///
/// # Errors
/// When a pattern names nothing, which lists what there is.
pub fn select(patterns: &[String], from: &[Case]) -> Result<Vec<Case>> {
    let is_bench = |case: &Case| matches!(case, Case::Bench(_));
    let mut chosen: Vec<Case> = Vec::new();
    for pattern in patterns {
        let glob = wildmatch::WildMatch::new(pattern);
        let mut found: Vec<Case> = from.iter().filter(|case| glob.matches(&case.to_string())).copied().collect();
        if found.is_empty() {
            match pattern.parse() {
                Ok(case) => found.push(case),
                // A bench can be called anything.
                Err(error) if pattern.contains("/p") && !pattern.contains('*') && !from.iter().any(is_bench) => {
                    return Err(error);
                }
                Err(_) => bail!("no case matches '{pattern}'; there are {}", list(from)),
            }
        }
        for case in found {
            if !chosen.contains(&case) {
                chosen.push(case);
            }
        }
    }
    Ok(chosen)
}

fn list(cases: &[Case]) -> String {
    cases.iter().map(Case::to_string).collect::<Vec<_>>().join(", ")
}

/// As [`select`], of what fits the context; all of that without any pattern.
///
/// # Errors
/// A pattern that names nothing; a case beyond the context that is named in full, or where nothing fits.
pub fn select_fitting(patterns: &[String], from: &[Case], context_tokens: usize) -> Result<Vec<Case>> {
    let mut cases = if patterns.is_empty() { from.to_vec() } else { select(patterns, from)? };
    let fits = |case: &Case| case.ensure_fits(context_tokens).is_ok();
    if cases.iter().any(fits) {
        cases.retain(|case| fits(case) || patterns.contains(&case.to_string()));
    }
    cases.iter().try_for_each(|case| case.ensure_fits(context_tokens)).context("--cases")?;
    Ok(cases)
}

/// The cases that `patterns` name, ids or globs over the grid; without any, the gate's suite; of both, what fits the context.
///
/// # Errors
/// As [`select_fitting`].
pub fn choose(patterns: &[String], context_tokens: usize) -> Result<Vec<Case>> {
    let mut known = gate_suite();
    if !patterns.is_empty() {
        known.extend(full_grid(context_tokens).into_iter().filter(|case| !gate_suite().contains(case)));
    }
    select_fitting(patterns, &known, context_tokens)
}

/// The benches that `patterns` name, by their name or a glob over it; all of them without any pattern.
///
/// # Errors
/// A pattern that names none of them.
pub fn choose_benches(patterns: &[String], benches: &[Case]) -> Result<Vec<Case>> {
    if patterns.is_empty() {
        return Ok(benches.to_vec());
    }
    let chosen = select(patterns, benches)?;
    if let Some(other) = chosen.iter().find(|case| !benches.contains(case)) {
        bail!("no bench is called '{other}'; there are {}", list(benches));
    }
    Ok(chosen)
}
