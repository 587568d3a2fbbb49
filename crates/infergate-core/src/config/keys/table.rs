//! The keys themselves. What there is to know of a key stands in its row.

use super::Group::{Build, Judge, JudgeStored, Measure, Memory, Paired, Session};
use super::Kind::{Count, List, Number, Path, Ratio, Switch, Text};
use super::SaidBy::{Base, BaseIfThere, HeadUnnoted};
use super::{Key, key};

/// Every key, in the order of `infergate.toml`.
pub const KEYS: &[Key] = &[
    key(Measure, "model", Text, "Model: synthetic:gpt2 (also distilgpt2, smollm2-135m, tiny), a .gguf file, a folder, or hf:ORG/NAME[@REV][/FILE.gguf]").default("\"synthetic:gpt2\"").value("SPEC"),
    key(Measure, "dtype", Text, "Compute type; f32 dequantizes a GGUF at load; left out: as the file has it").example("\"f32\""),
    key(Measure, "threads", Count(1, 4096), "Threads to compute with; left out: every core this process may use").example("2"),
    key(Measure, "seed", Count(0, i64::MAX as u64), "Seed of synthetic weights and prompts").default("1"),
    key(Measure, "options", List, "What else the engine understands, NAME=VALUE each; never written into a receipt").default("[]").example("[\"url=http://127.0.0.1:8080\", \"device=cuda\"]").value("NAME=VALUE"),
    key(Measure, "prompt", Path, "Text file that prompts are cut from; left out: a public-domain text that comes with infergate").example("\"prompts/alice.txt\""),
    key(Measure, "cases", List, "Cases, ids or globs; empty: the gate's suite of five (the full grid for `cargo bench`)").default("[]").example("[\"decode/*\", \"prefill/p256\"]").value("GLOB").said_by(BaseIfThere),
    key(Session, "runs", Count(1, 1000), "Fresh processes of one session").default("5"),
    key(Session, "seconds_per_case", Number(0.0, 3600.0), "Time to sample one case in one process; at least 3 samples, at most 200").default("3.0"),
    key(Paired, "threshold", Ratio(1.001, 100.0), "Against a revision, a slowdown by this ratio or more fails, 1.02 or 2%").default("1.02").said_by(Base),
    key(Paired, "mean_threshold", Ratio(1.001, 100.0), "Against a revision, the same ratio of the means, which see a few steps that take much longer; left out: 1.05 where the means of a case are quiet, 1.10 elsewhere, and more beside a wide threshold").example("1.05").said_by(Base),
    key(Paired, "widest", Ratio(1.001, 100.0), "Against a revision, a case that noise leaves undecided passes if a slowdown by this ratio is excluded; left out: 1.05, and 1.10 for criterion and divan benches").example("1.05").said_by(Base),
    key(Paired, "undecided", Text, "Against a revision, what a run that ends inconclusive or unstable does: fail; or warn, which lets pass what noise left open and says so").default("\"fail\"").said_by(Base),
    key(JudgeStored, "require_baseline", Switch, "Whether a run without a comparable baseline fails (exit 4) instead of being advisory").default("false"),
    key(Judge, "drift_tolerance", Number(0.0, 1.0), "Logits that differ by up to this fraction of the largest one (root mean square) drifted, more is a changed output; left out: by the dtype, 1e-6 for f32").example("1e-6").said_by(Base),
    key(Judge, "counter_tolerance", Number(0.0, 1.0), "A counter of bytes may rise by this fraction and passes; a number of allocations may not rise at all").default("0.01").said_by(Base),
    key(Judge, "targets", List, "Absolute limits, `CASE METRIC < VALUE` each (also <=, > and >=), in the unit that the metric names").default("[]").example("[\"prefill/p128 ttft_ms < 2500\", \"decode/* tokens_per_s > 20\"]").value("LIMIT").said_by(Base),
    key(Judge, "baselines", Path, "Folder of the committed baselines").default("\"baselines\""),
    key(Paired, "base_folder", Path, "Folder, outside the repository, that keeps the checkout and build of a base revision; left out: the user's cache").example("\"/var/cache/infergate\"").said_by(HeadUnnoted),
    key(Memory, "memory.case", Text, "Case that the memory phase repeats").default("\"generate/p128-o16\"").value("ID").said_by(BaseIfThere),
    key(Memory, "memory.runs", Count(0, 5000), "Runs of the memory phase; a verdict on leaks takes at least 20; 0 looks for no leak, and counts no allocations of criterion benches").default("100").said_by(BaseIfThere),
    key(Build, "bench.package", Text, "Package of the bench target; left out: the one of the current folder").example("\"my-engine\""),
    key(Build, "bench.target", Text, "Bench target that is the measured worker; left out: `inference` if that is an engine's, else all that use criterion or divan").example("\"inference\""),
    key(Build, "bench.features", List, "Features to build it with").default("[]").example("[\"cuda\"]"),
    key(Build, "bench.default_features", Switch, "Build it with its package's default features").default("true"),
    key(Build, "bench.profile", Text, "Profile to build it with; left out: cargo's own for benches").example("\"release-lto\""),
    key(Paired, "bench.carry", List, "Files and folders that it reads and git ignores, linked into each checkout").default("[]").example("[\"data\"]"),
    key(Paired, "worker.command", List, "Against a revision, in place of a bench target: a program and its arguments, run once a sample in each checkout; its output is what it prints").default("[]").value("PROGRAM,ARGUMENT,..."),
    key(Paired, "worker.build", List, "A program and its arguments that build that command, run once in each checkout").default("[]").value("PROGRAM,ARGUMENT,..."),
    key(Paired, "worker.check_output", Switch, "Compare what the command prints; false for one that prints times").default("true").said_by(Base),
    key(Paired, "server.command", List, "With gate --server: a program and its arguments that start a server; {port} in one of them becomes a free port, {side} base or head").default("[]").value("PROGRAM,ARGUMENT,..."),
    key(Paired, "server.build", List, "A program and its arguments that build the server, run once in each checkout").default("[]").value("PROGRAM,ARGUMENT,..."),
    key(Paired, "server.ready", Text, "Path that answers 2xx once the server is ready").default("\"/health\""),
    key(Paired, "server.ready_s", Count(1, 86_400), "Seconds within which it has to be ready").default("300"),
    key(Paired, "server.model", Text, "The model's name at the server").default("\"default\""),
    key(Paired, "server.api", Text, "Which of its endpoints is asked: chat or completions").default("\"chat\""),
    key(Paired, "server.ignore_eos", Switch, "Send the extensions ignore_eos and min_tokens: every answer has its full length").default("false"),
    key(Paired, "server.check_output", Switch, "Compare what the server says; false for one that does not say the same twice").default("true").said_by(Base),
    key(Paired, "server.users", Count(1, 10_000), "With gate --server: time so many users at once; left out: one request at a time").example("16").alias("users").said_by(BaseIfThere),
    key(Paired, "server.window_s", Number(0.05, 600.0), "Seconds of a window of load; left out: at least 10, by how long requests take").example("10").said_by(BaseIfThere),
    key(Paired, "server.throughput_limit", Ratio(1.001, 100.0), "Under load, the ratio from which on the system time per output token fails").default("1.05").said_by(Base),
    key(Paired, "server.latency_limit", Ratio(1.001, 100.0), "Under load, the ratio from which on the P90 of TTFT or of ITL fails").default("1.10").said_by(Base),
];
