#!/usr/bin/env python3
"""Gates of commits that only move code, and of commits that are 3 to 6 % slower, in nine crates.

In benches of a few nanoseconds the counter of calls costs more than that.

    python3 scripts/layout_gates.py --command PATH                         # everything: 100 gates, some hours
    python3 scripts/layout_gates.py --command PATH --crates own --moves 3 --slower 2
    python3 scripts/layout_gates.py --command PATH --layouts 1             # one build a side, to compare with

Each gate that ends is a line of --results, and the next call goes on behind the last one: it prints the table of all that are in it.
Without --command it prints that table and gates nothing. PATH is a `cargo-infergate` that is built already. A quiet machine is needed:
other programs make gates inconclusive. Two calls at once need two folders (--place), and a core each.
"""
import argparse
import datetime
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

from repositories import begin, git

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ROOT / "scripts" / "layout_gates"
GATES = 10
FIRST = "src/lib.rs"

# What is called once more in every so many calls, so that a call takes 3 to 6 % longer on average.
SLOWER = """
mod slower {
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    #[inline]
    pub fn turn(every: u32) -> bool {
        let calls = CALLS.load(Relaxed) + 1;
        let is_turn = calls >= every;
        CALLS.store(if is_turn { 0 } else { calls }, Relaxed);
        is_turn
    }
}
"""
AGAIN = "if crate::slower::turn({every}) {{ {again} }}\n        "

# Of candle-core's kernels.
VEC_DOT = ("impl GgmlType for {0} {{\n    const DTYPE: GgmlDType = GgmlDType::{2};\n    const BLCK_SIZE: usize = {1};\n    type VecDotType = {3};\n\n"
           "    fn vec_dot(n: usize, xs: &[Self], ys: &[Self::VecDotType]) -> f32 {{\n        Self::vec_dot_unopt(n, xs, ys)\n    }}\n\n"
           "    fn vec_dot_unopt(n: usize, xs: &[Self], ys: &[Self::VecDotType]) -> f32 {{\n")
ROW_AGAIN = "core::hint::black_box(Self::vec_dot_unopt(n, core::hint::black_box(xs), ys));"

# Of each crate: its version, its bench target, the benches that are gated, and what is made slower: a file, the text behind which
# the second call stands, that call, the benches that reach it, what the function's name matches, and the part of their time it has.
CRATES = {
    "own": {"bench": "five", "slower": [
        ("hash", "src/lib.rs", "pub fn hash(text: &[u8]) -> u64 {\n", "core::hint::black_box(hash(core::hint::black_box(text)));", ["hash"], "hash"),
        ("numbers", "src/lib.rs", "pub fn numbers(line: &str) -> u64 {\n", "core::hint::black_box(numbers(core::hint::black_box(line)));", ["numbers"], "numbers"),
        ("sorted", "src/lib.rs", "pub fn sorted(values: &[u32]) -> Vec<u32> {\n", "core::hint::black_box(sorted(core::hint::black_box(values)));", ["sorted"], "sorted"),
        # An iteration of these is a sample: a part of each call is done again.
        ("words", "src/lib.rs", "pub fn words(text: &str) -> usize {\n", "part:words", ["words"], "words|words_of"),
        ("scan", "src/lib.rs", "pub fn scan(text: &[u8]) -> usize {\n", "part:scan", ["scan"], "scan|scan_of"),
    ]},
    "httparse": {"version": "1.10.1", "bench": "parse", "cases": "req/*,req_short/*,resp/*,resp_short/*", "slower": [
        ("requests", "src/lib.rs", "pub fn parse(&mut self, buf: &'b [u8]) -> Result<usize> {\n        self.parse_with_config(buf, &Default::default())",
         "core::hint::black_box(self.parse_with_config(core::hint::black_box(buf), &Default::default()).is_ok());", ["req/req", "req_short/req_short"], "parse|parse_with_config.*"),
        ("responses", "src/lib.rs", "pub fn parse(&mut self, buf: &'b [u8]) -> Result<usize> {\n        self.parse_with_config(buf, &ParserConfig::default())",
         "core::hint::black_box(self.parse_with_config(core::hint::black_box(buf), &ParserConfig::default()).is_ok());", ["resp/resp", "resp_short/resp_short"], "parse|parse_with_config.*"),
    ]},
    "semver": {"version": "1.0.28", "bench": "parse", "slower": [
        ("Version", "src/parse.rs", "    fn from_str(text: &str) -> Result<Self, Self::Err> {\n        if text.is_empty() {",
         "core::hint::black_box(Self::from_str(core::hint::black_box(text)).is_ok());", ["parse Version"], "from_str"),
        ("VersionReq", "src/parse.rs", "    fn from_str(text: &str) -> Result<Self, Self::Err> {\n        let text = text.trim_start_matches(' ');\n        if let Some",
         "core::hint::black_box(Self::from_str(core::hint::black_box(text)).is_ok());", ["parse VersionReq"], "from_str"),
    ]},
    "ryu-js": {"version": "1.0.2", "bench": "bench", "slower": [
        ("format", "src/buffer/mod.rs", "    pub fn format_finite<F: Float>(&mut self, f: F) -> &str {\n",
         "core::hint::black_box(Self::new().format_finite(core::hint::black_box(f)).len());", ["ryu_js_*"], "format_finite"),
    ]},
    "base64": {"version": "0.22.1", "bench": "benchmarks", "cases": "*_small_input/*_slice/500,*_small_input/*_slice/3072", "slower": [
        ("encode", "src/engine/general_purpose/mod.rs", "    fn internal_encode(&self, input: &[u8], output: &mut [u8]) -> usize {\n",
         "let _ = core::hint::black_box(self.internal_encode(core::hint::black_box(input), output));", ["encode_small_input/*"], "internal_encode"),
    ]},
    "safetensors": {"version": "0.8.0", "bench": "benchmark", "cases": "Deserialize*", "slower": [
        ("deserialize", "src/tensor.rs", "    pub fn deserialize(buffer: &'data [u8]) -> Result<Self, SafeTensorError> {\n",
         "core::hint::black_box(Self::deserialize(core::hint::black_box(buffer)).is_ok());", ["Deserialize 10_MB"], "deserialize|read_metadata"),
    ]},
    # Its own benches of kernels: rows of quantized weights, whose code it has without vector instructions.
    "candle-core": {"version": "0.11.1", "bench": "bench_main", "cases": "cpu_qmatmul_Q5_1/iter,cpu_qmatmul_Q4_1/iter,cpu_affine_f32/iter", "slower": [
        ("Q5_1", "src/quantized/k_quants.rs", VEC_DOT.format("BlockQ5_1", "QK5_1", "Q5_1", "BlockQ8_1"), ROW_AGAIN, ["cpu_qmatmul_Q5_1/iter"], "vec_dot(_unopt)?|matmul"),
        ("Q4_1", "src/quantized/k_quants.rs", VEC_DOT.format("BlockQ4_1", "QK4_1", "Q4_1", "BlockQ8_1"), ROW_AGAIN, ["cpu_qmatmul_Q4_1/iter"], "vec_dot(_unopt)?|matmul"),
        ("affine", "src/cpu_backend/mod.rs", "    fn affine(&self, layout: &Layout, mul: f64, add: f64) -> Result<Self> {\n",
         "core::hint::black_box(self.affine(layout, mul, add)?);", ["cpu_affine_f32/iter"], "affine|unary_map.*|f|map"),
    ]},
    "tokenizers": {"version": "0.23.2", "bench": "encode", "slower": [
        ("WordPiece", "src/models/wordpiece/mod.rs", "    fn tokenize(&self, sequence: &str) -> Result<Vec<Token>> {\n",
         "core::hint::black_box(self.tokenize(core::hint::black_box(sequence))?);", ["wordpiece"], "tokenize", 0.3),
        ("normalize", "src/normalizers/bert.rs", "    fn normalize(&self, normalized: &mut NormalizedString) -> Result<()> {\n",
         "let mut again = normalized.clone(); self.normalize(&mut again)?; core::hint::black_box(again);", ["wordpiece"], "normalize", 0.3),
        ("pre_tokenize", "src/pre_tokenizers/bert.rs", "    fn pre_tokenize(&self, pretokenized: &mut PreTokenizedString) -> Result<()> {\n",
         "let mut again = pretokenized.clone(); self.pre_tokenize(&mut again)?; core::hint::black_box(again);", ["wordpiece"], "pre_tokenize", 0.3),
    ]},
    # infergate's own engine.
    "gpt2": {"bench": "inference", "first": "crates/infergate-candle/src/lib.rs", "cases": "decode/p128", "slower": [
        ("attend", "crates/infergate-candle/src/gpt2/step.rs", "            *score = (*score - largest).exp();\n        }\n",
         "for _ in 0..24 { core::hint::black_box(scores.iter().map(|score| (core::hint::black_box(*score) - largest).exp()).sum::<f32>()); }", ["decode/p128"], "attend", 0.1),
        ("apply", "crates/infergate-candle/src/gpt2/step.rs", "    fn apply(&self, x: &[f32], out: &mut [f32]) -> Candle<()> {\n",
         "self.apply(core::hint::black_box(x), out)?;", ["decode/p128"], "apply", 0.35),
        ("bend", "crates/infergate-candle/src/gpt2/step.rs", "pub(super) fn bend(activation: Activation, inner: &mut [f32]) -> Candle<()> {\n",
         "for _ in 0..6 { core::hint::black_box(inner.iter().map(|x| (-core::hint::black_box(*x)).exp()).sum::<f32>()); }",
         ["decode/p128"], "bend", 0.1),
    ]},
}


def padding(number):
    """A function that nobody calls and that the linker keeps, the longer the larger the number."""
    rounds = "\n".join(f"    sum = sum.rotate_left({1 + at % 60}) ^ by.wrapping_mul({2 * at + 3});" for at in range(3 * number))
    return (f"\n#[used]\nstatic KEPT_{number}: fn(u64, u64) -> u64 = padding_{number};\n"
            f"#[inline(never)]\nfn padding_{number}(mut sum: u64, by: u64) -> u64 {{\n{rounds}\n    sum\n}}\n")


def branches(number):
    """Another branch in a function that no bench reaches."""
    arms = "\n".join(f"        {at} => sum / {at + 3} + {at * at}," for at in range(number))
    return (f"\n#[used]\nstatic BRANCHES: fn(u64) -> u64 = branches;\n"
            f"#[inline(never)]\nfn branches(sum: u64) -> u64 {{\n    match sum % 64 {{\n{arms}\n        _ => sum,\n    }}\n}}\n")


def constant(length):
    """A constant that nobody reads and that the linker keeps."""
    return f"\n#[used]\nstatic LONGER: [u8; {length}] = [7; {length}];\n"


def reordered(text, by):
    """Modules in another order: the lines `mod name;` of the first file, turned by some places."""
    lines = text.split("\n")
    at = [number for number, line in enumerate(lines) if re.fullmatch(r"(pub )?mod \w+;", line)
          and not lines[number - 1].startswith("#[")]
    if len(at) < 2:
        # One file: its functions in another order, by the empty lines between them.
        head, *parts = re.split(r"\n(?=/// About )", text)
        parts = parts[by % max(len(parts), 1):] + parts[:by % max(len(parts), 1)]
        return "\n".join([head, *(part.rstrip("\n") + "\n" for part in parts)])
    turned = [lines[number] for number in at[by % len(at):] + at[:by % len(at)]]
    for number, line in zip(at, turned):
        lines[number] = line
    return "\n".join(lines)


# Ten commits that only move code: each is made of the first file's text.
MOVES = [(f"padding {number}", lambda text, number=number: text + padding(number)) for number in (1, 4, 11, 30)]
MOVES += [(f"order {by}", lambda text, by=by: reordered(text, by) + padding(by)) for by in (1, 2)]
MOVES += [(f"branch {number}", lambda text, number=number: text + branches(number)) for number in (5, 40)]
MOVES += [(f"constant {length}", lambda text, length=length: text + constant(length)) for length in (200, 5000)]
# In each: one function, and how often it is called once more.
EVERY = [20, 22, 25, 28, 32]


def run(folder, *command, **more):
    """One command that has to end well."""
    done = subprocess.run([str(word) for word in command], cwd=folder, text=True, capture_output=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} in {folder}:\n{done.stdout}{done.stderr}")
    return done.stdout


def prepared(place, name, crate):
    """The crate in a repository of its own, its benches gated, and the commit `gated`."""
    folder = place / name
    if (folder / ".git").is_dir():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    if name == "gpt2":
        run(place, "git", "clone", "--quiet", ROOT, folder)
        git(folder, "tag", "gated")
        return folder
    if name == "own":
        (folder / "src").mkdir(parents=True)
        (folder / "benches").mkdir()
        shutil.copy(PARTS / "lib.rs", folder / "src" / "lib.rs")
        shutil.copy(PARTS / "five.rs", folder / "benches" / "five.rs")
        (folder / "Cargo.toml").write_text('[package]\nname = "own"\nversion = "0.1.0"\nedition = "2024"\n\n[dev-dependencies]\ncriterion = "0.8"\n\n'
                                            '[[bench]]\nname = "five"\nharness = false\n')
    else:
        fetching = place / f"fetch-{name}"
        (fetching / "src").mkdir(parents=True, exist_ok=True)
        (fetching / "src" / "lib.rs").touch()
        (fetching / "Cargo.toml").write_text(f'[package]\nname = "fetching"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n[dependencies]\n'
                                             f'{name} = "={crate["version"]}"\n')
        run(fetching, "cargo", "vendor", "--quiet", "vendor")
        shutil.copytree(fetching / "vendor" / name, folder)
        for path in [folder / ".cargo-checksum.json", folder / "Cargo.lock"]:
            path.unlink(missing_ok=True)
    manifest = (folder / "Cargo.toml").read_text()
    if name == "tokenizers":
        # Its own benches read files that its package has not.
        manifest += f'\n[[bench]]\nname = "{crate["bench"]}"\nharness = false\n'
        shutil.copy(PARTS / "tokenizers.rs", folder / "benches" / f"{crate['bench']}.rs")
    # Explanations then name what was inlined, too.
    lines = "" if "[profile.bench]" in manifest else '\n[profile.bench]\ndebug = "line-tables-only"\n'
    (folder / "Cargo.toml").write_text(f'{manifest}{lines}\n[workspace]\n')
    (folder / ".gitignore").write_text("target\n")
    begin(folder, "gated")
    return folder


def make_slower(folder, first, change, every):
    """One function is called once more in `every` calls, or does a part of its work again. Gives the benches it reaches."""
    name, path, anchor, again, reached, function, *part = change
    # The second call counts, too: with two, each call is done again.
    every = max(2, round(every * sum(part or [1])))
    source = folder / path
    text = source.read_text()
    if anchor not in text:
        sys.exit(f"{source}: has no '{anchor}'")
    if again.startswith("part:"):
        whole = again.removeprefix("part:")
        # Renamed, and called for all of its text and again for a part of it.
        signature = re.search(rf"pub fn {whole}\((\w+): &(\w+|\[u8\])\) -> usize {{\n", text)
        argument, kind = signature.group(1), signature.group(2)
        again = (f"pub fn {whole}({argument}: &{kind}) -> usize {{\n    core::hint::black_box({whole}_of(&{argument}[..{argument}.len() / {every}]));\n"
                 f"    {whole}_of({argument})\n}}\n\n#[inline(never)]\nfn {whole}_of({argument}: &{kind}) -> usize {{\n")
        text = text.replace(anchor, again, 1)
    else:
        line = AGAIN.format(every=every, again=again)
        if anchor.endswith("\n"):
            text = text.replace(anchor, f"{anchor}        {line}", 1)
        else:
            head, body = anchor.split("{\n", 1)
            text = text.replace(anchor, f"{head}{{\n        {line}{body}", 1)
    source.write_text(text)
    first = folder / first
    first.write_text(first.read_text() + SLOWER)
    return name, reached, function


def gate(folder, crate, arguments, verdict, explain):
    """One gate against the commit `gated`. Gives the seconds it took and what it said of each bench."""
    verdict.unlink(missing_ok=True)
    command = [arguments.command, "infergate", "gate", "--against", "gated", "--bench-target", crate["bench"], "--memory-runs", "0",
               "--threshold", "2%", "--json", verdict, "--no-wait", "--base-folder", folder.parent / f"{folder.name}-base"]
    command += ["--cases", crate["cases"]] if "cases" in crate else []
    command += ["--layouts", str(arguments.layouts)] if arguments.layouts else []
    command += [f"--explain={case}" for case in explain]
    began = time.monotonic()
    done = subprocess.run([str(word) for word in command], cwd=folder, text=True, capture_output=True)
    seconds = time.monotonic() - began
    if not verdict.is_file():
        sys.exit(f"{folder}: no verdict:\n{done.stdout}{done.stderr}")
    said = json.loads(verdict.read_text())
    return {"seconds": seconds, "exit": done.returncode, "verdict": said["verdict"],
            "named": named(folder / "target" / "infergate" / "paired.json"),
            "regressed": sorted({row["subject"] if "subject" in row else row["case"] for row in said["rows"] if row["outcome"] == "regressed"})}


def named(receipt):
    """Of each case that was explained: what was named, the first one first."""
    if not receipt.is_file():
        return {}
    explained = json.loads(receipt.read_text()).get("explained", [])
    def known(function):
        return {"name": function["name"], "inlined": function.get("place", "").rpartition(" at ")[0], "caller": function.get("caller", "")}
    # Layout names no function in words.
    is_layout = lambda one: one.get("runs_changed") is False
    return {one["id"]: [] if is_layout(one) else [known(function) for function in one["functions"]] for one in explained if not one.get("why_not")}


def is_function(pattern, function):
    """Whether a function, or what was inlined into it, is what a change made slower, or a closure in it; of one of the standard library
    it counts who calls it."""
    is_std = re.match(r"<?(std|core|alloc)::", function["name"])
    names = [function["name"], function["inlined"], *([function["caller"]] if is_std else [])]
    last = [re.sub(r"(::\{(\{closure\}|closure#\d+)\})+$", "", re.sub(r"::<.*>$", "", name)).rsplit("::", 1)[-1] for name in names]
    return any(re.fullmatch(pattern, name) for name in last)


def reaches(pattern, bench):
    """Whether a bench is one of those a change reaches."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), str(bench).removeprefix("bench:")) is not None


def one(place, name, crate, kind, number, arguments):
    """One commit and its gate."""
    folder = prepared(place, name, crate)
    git(folder, "reset", "--quiet", "--hard", "gated")
    first, reached, function = folder / crate.get("first", FIRST), [], None
    if kind == "moves":
        what, change = MOVES[number]
        first.write_text(change(first.read_text()))
    else:
        changes = crate["slower"]
        what, reached, function = make_slower(folder, crate.get("first", FIRST), changes[number % len(changes)], EVERY[number // len(changes) % len(EVERY)])
    git(folder, "commit", "--quiet", "--all", "--message", what)
    explain = arguments.explain.split(",") if arguments.explain and kind == "moves" else []
    found = gate(folder, crate, arguments, place / "verdict.json", explain)
    # Of the explained cases that the change reaches, those whose first function is the right one.
    reached_of = [names for case, names in found["named"].items() if any(reaches(pattern, case) for pattern in reached)]
    found["explained"] = len(reached_of) if kind == "slower" else len(found["named"])
    found["right"] = sum(bool(names) and is_function(function, names[0]) for names in reached_of) if kind == "slower" else \
        sum(not names for names in found["named"].values())
    wrong = [bench for bench in found["regressed"] if not any(reaches(pattern, bench) for pattern in reached)]
    hit = [bench for bench in found["regressed"] if bench not in wrong]
    found["first"] = {case: names[0]["name"] if names else None for case, names in found.pop("named").items()}
    return {"date": datetime.date.today().isoformat(), "crate": name, "kind": kind, "number": number, "what": what, "layouts": arguments.layouts,
            **found, "found": bool(hit), "beside": wrong}


def table(results):
    """What is there, a line a crate."""
    print("\n| crate | gates that only move code | failing | undecided | slower by 3 to 6 % | found | other benches called "
          "| right function first | nothing named where nothing is slower | seconds a gate |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in CRATES:
        moves = [one for one in results if one["crate"] == name and one["kind"] == "moves"]
        slower = [one for one in results if one["crate"] == name and one["kind"] == "slower"]
        if moves or slower:
            failing, undecided = (sum(one["exit"] == code for one in moves) for code in (1, 3))
            beside = sum(bool(one["beside"]) for one in slower)
            of = [f"{sum(one.get('right', 0) for one in kind)} of {sum(one.get('explained', 0) for one in kind)}" for kind in (slower, moves)]
            seconds = sorted(one["seconds"] for one in moves + slower)
            print(f"| {name} | {len(moves)} | {failing} | {undecided} | {len(slower)} | {sum(one['found'] for one in slower)} | {beside} "
                  f"| {of[0]} | {of[1]} | {seconds[len(seconds) // 2]:.0f} (median), {seconds[-1]:.0f} at most |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", type=pathlib.Path)
    parser.add_argument("--crates", default=",".join(CRATES))
    parser.add_argument("--moves", type=int, default=GATES)
    parser.add_argument("--slower", type=int, default=GATES)
    parser.add_argument("--layouts", type=int, default=0, help="as the gate's flag; 0 leaves it out")
    parser.add_argument("--explain", default="", help="cases to explain in gates that only move code, by comma")
    parser.add_argument("--place", type=pathlib.Path, default=ROOT / "target" / "layout-gates")
    parser.add_argument("--results", type=pathlib.Path, default=PARTS / "results.jsonl")
    arguments = parser.parse_args()
    kept = arguments.results.resolve()
    results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.is_file() else []
    if arguments.command is None:
        return table([one for one in results if one["layouts"] == arguments.layouts])
    arguments.command = arguments.command.resolve()
    place = arguments.place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    asked = [(name, kind, number) for name in arguments.crates.split(",") for kind, count in (("moves", arguments.moves), ("slower", arguments.slower))
             for number in range(min(count, GATES))]
    for name, kind, number in asked:
        if any((one["crate"], one["kind"], one["number"], one["layouts"]) == (name, kind, number, arguments.layouts) for one in results):
            continue
        result = one(place, name, CRATES[name], kind, number, arguments)
        results.append(result)
        with kept.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(json.dumps(result), flush=True)
    table([one for one in results if one["layouts"] == arguments.layouts])


if __name__ == "__main__":
    main()
