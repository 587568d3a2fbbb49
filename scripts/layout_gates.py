#!/usr/bin/env python3
"""Gates commits whose verdict is known, in seven crates: do functions that only move pass, and do slower ones fail?

    python3 scripts/layout_gates.py --command PATH                         # everything: 105 gates, some hours
    python3 scripts/layout_gates.py --command PATH --crates own --moves 3 --slower 2 --equivalent 0

- moves: no function that a bench runs changes; all of them move.
- slower: one function takes 3 to 6 % longer. In benches of a few nanoseconds the counter of calls costs more than that.
- equivalent: the same function changes without doing more work: a branch that nothing takes, match arms that nothing reaches, a spill or
  a panic on a cold path. Number and crate are the seed that draws function and change; the commit is named after them.

Every gate times all cases (`--time-same-code`). With --linked each commit is gated a second time, by the two programs as cargo linked
them; the table's last column has these. Each gate that ends is a line of --results, and the next call continues after the last
one: it prints the table of all that are in it. Without --command it prints that table and gates nothing. PATH is a `cargo-infergate`
that is built already. A quiet machine is needed: other programs make gates inconclusive. Two calls at once need two folders (--place),
and a core each.
"""
import argparse
import datetime
import itertools
import json
import math
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
from typing import NamedTuple

from repositories import RARE, begin, copy_published, equivalents, git, published, took

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ROOT / "scripts" / "layout_gates"
FIRST = "src/lib.rs"


class Function(NamedTuple):
    """A function that benches spend their time in."""

    name: str
    file: str
    anchor: str
    """The text up to its first statement; where the brace is followed by more, up to some of that."""
    again: str
    """A statement that does its work once more; `part:NAME` does a part of it more in each call."""
    argument: str
    """A reference that it has there."""
    reached: list[str]
    """The benches that reach it."""
    names: str
    """What its name in an explanation matches."""
    share: float = 1
    """The part of their time that it has."""


def call(function):
    """A call whose result is used."""
    return f"let _ = core::hint::black_box({function});"


# Of each crate: its version, its bench target, the benches that are gated, the file that `mod` lines stand in, and functions.
CRATES = {
    "own": {"bench": "five", "functions": [
        Function("hash", FIRST, "pub fn hash(text: &[u8]) -> u64 {\n", call("hash(core::hint::black_box(text))"), "text", ["hash"], "hash"),
        Function("numbers", FIRST, "pub fn numbers(line: &str) -> u64 {\n", call("numbers(core::hint::black_box(line))"), "line", ["numbers"], "numbers"),
        Function("sorted", FIRST, "pub fn sorted(values: &[u32]) -> Vec<u32> {\n", call("sorted(core::hint::black_box(values))"), "values", ["sorted"], "sorted"),
        # An iteration of these is a sample.
        Function("words", FIRST, "pub fn words(text: &str) -> usize {\n", "part:words", "text", ["words"], "words|words_of"),
        Function("scan", FIRST, "pub fn scan(text: &[u8]) -> usize {\n", "part:scan", "text", ["scan"], "scan|scan_of"),
    ]},
    "httparse": {"version": "1.10.1", "bench": "parse", "cases": "req/*,req_short/*,resp/*,resp_short/*", "functions": [
        Function("requests", FIRST, "pub fn parse(&mut self, buf: &'b [u8]) -> Result<usize> {\n        self.parse_with_config(buf, &Default::default())",
                 call("self.parse_with_config(core::hint::black_box(buf), &Default::default()).is_ok()"), "buf", ["req/req", "req_short/req_short"], "parse|parse_with_config.*"),
        Function("responses", FIRST, "pub fn parse(&mut self, buf: &'b [u8]) -> Result<usize> {\n        self.parse_with_config(buf, &ParserConfig::default())",
                 call("self.parse_with_config(core::hint::black_box(buf), &ParserConfig::default()).is_ok()"), "buf", ["resp/resp", "resp_short/resp_short"],
                 "parse|parse_with_config.*"),
    ]},
    "semver": {"version": "1.0.28", "bench": "parse", "functions": [
        Function("Version", "src/parse.rs", "    fn from_str(text: &str) -> Result<Self, Self::Err> {\n        if text.is_empty() {",
                 call("Self::from_str(core::hint::black_box(text)).is_ok()"), "text", ["parse Version"], "from_str"),
        Function("VersionReq", "src/parse.rs", "    fn from_str(text: &str) -> Result<Self, Self::Err> {\n        let text = text.trim_start_matches(' ');\n        if let Some",
                 call("Self::from_str(core::hint::black_box(text)).is_ok()"), "text", ["parse VersionReq"], "from_str"),
    ]},
    "ryu-js": {"version": "1.0.2", "bench": "bench", "functions": [
        Function("format", "src/buffer/mod.rs", "    pub fn format_finite<F: Float>(&mut self, f: F) -> &str {\n",
                 call("Self::new().format_finite(core::hint::black_box(f)).len()"), "self", ["ryu_js_*"], "format_finite"),
    ]},
    "base64": {"version": "0.22.1", "bench": "benchmarks", "cases": "*_small_input/*_slice/500,*_small_input/*_slice/3072", "functions": [
        Function("encode", "src/engine/general_purpose/mod.rs", "    fn internal_encode(&self, input: &[u8], output: &mut [u8]) -> usize {\n",
                 call("self.internal_encode(core::hint::black_box(input), output)"), "input", ["encode_small_input/*"], "internal_encode"),
    ]},
    "safetensors": {"version": "0.8.0", "bench": "benchmark", "cases": "Deserialize*", "functions": [
        Function("deserialize", "src/tensor.rs", "    pub fn deserialize(buffer: &'data [u8]) -> Result<Self, SafeTensorError> {\n",
                 call("Self::deserialize(core::hint::black_box(buffer)).is_ok()"), "buffer", ["Deserialize 10_MB"], "deserialize|read_metadata"),
    ]},
    # infergate's own engine.
    "gpt2": {"bench": "inference", "first": "crates/infergate-candle/src/lib.rs", "cases": "decode/p128", "functions": [
        Function("attend", "crates/infergate-candle/src/gpt2/step.rs", "            *score = (*score - largest).exp();\n        }\n",
                 f"for _ in 0..24 {{ {call('scores.iter().map(|score| (core::hint::black_box(*score) - largest).exp()).sum::<f32>()')} }}", "scores", ["decode/p128"], "attend", 0.1),
        Function("apply", "crates/infergate-candle/src/gpt2/step.rs", "    fn apply(&self, x: &[f32], out: &mut [f32]) -> Candle<()> {\n",
                 "self.apply(core::hint::black_box(x), out)?;", "x", ["decode/p128"], "apply", 0.35),
        Function("bend", "crates/infergate-candle/src/gpt2/step.rs", "pub fn bend(activation: Activation, inner: &mut [f32]) -> Candle<()> {\n",
                 f"for _ in 0..6 {{ {call('inner.iter().map(|x| (-core::hint::black_box(*x)).exp()).sum::<f32>()')} }}", "inner", ["decode/p128"], "bend", 0.1),
    ]},
}

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
# How often a function does its work once more, in one slower commit after the other.
EVERY = [20, 22, 25, 28, 32]

EQUIVALENT = f"\nmod equivalent {{\n{RARE}}}\n"


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


# Commits that only move code, each made of the first file's text.
MOVES = [
    ("padding 4", lambda text: text + padding(4)),
    ("order 1", lambda text: reordered(text, 1) + padding(1)),
    ("branch 40", lambda text: text + branches(40)),
    ("constant 5000", lambda text: text + constant(5000)),
    ("padding 30", lambda text: text + padding(30)),
    ("order 2", lambda text: reordered(text, 2) + padding(2)),
    ("branch 5", lambda text: text + branches(5)),
    ("constant 200", lambda text: text + constant(200)),
    ("padding 1", lambda text: text + padding(1)),
    ("padding 11", lambda text: text + padding(11)),
]


def prepared(place, name, crate):
    """The crate in a repository of its own, its benches gated, and the commit `gated`."""
    folder = place / name
    if (folder / ".git").is_dir():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    if name == "gpt2":
        git(place, "clone", "--quiet", ROOT, folder)
        git(folder, "tag", "gated")
        return folder
    if name == "own":
        (folder / "src").mkdir(parents=True)
        (folder / "benches").mkdir()
        shutil.copy(PARTS / "lib.rs", folder / "src" / "lib.rs")
        shutil.copy(PARTS / "five.rs", folder / "benches" / "five.rs")
        (folder / "Cargo.toml").write_text('[package]\nname = "own"\nversion = "0.1.0"\nedition = "2024"\n\n[dev-dependencies]\ncriterion = "0.8"\n\n'
                                            '[[bench]]\nname = "five"\nharness = false\n\n[workspace]\n')
        (folder / ".gitignore").write_text("/target\n")
    else:
        copy_published(published(place / f"fetch-{name}", name, crate["version"]), folder)
    manifest = folder / "Cargo.toml"
    # Explanations then name what was inlined, too.
    if "[profile.bench]" not in manifest.read_text():
        manifest.write_text(f'{manifest.read_text()}\n[profile.bench]\ndebug = "line-tables-only"\n')
    begin(folder, "gated")
    return folder


def with_first(text, function, statement):
    """The text of a file in which that is the function's first statement."""
    before, brace, begun = function.anchor.partition("{\n") if not function.anchor.endswith("\n") else (function.anchor, "", "")
    if function.anchor not in text:
        sys.exit(f"{function.file}: has no '{function.anchor}'")
    return text.replace(function.anchor, f"{before}{brace}        {statement}\n{begun}", 1)


def make_slower(text, function, every):
    """The text in which it does its work again in one of `every` calls, or a part of it in each."""
    # The second call counts, too: with two, each call is done again.
    every = max(2, round(every * function.share))
    whole = function.again.removeprefix("part:")
    if whole == function.again:
        return with_first(text, function, f"if crate::slower::turn({every}) {{ {function.again} }}")
    # Renamed, and called for all of its text and again for a part of it.
    argument, kind = re.search(r"\((\w+): &(\S+)\)", function.anchor).groups()
    outer = (f"{function.anchor}    core::hint::black_box({whole}_of(&{argument}[..{argument}.len() / {every}]));\n"
             f"    {whole}_of({argument})\n}}\n\n#[inline(never)]\nfn {whole}_of({argument}: &{kind}) -> usize {{\n")
    return text.replace(function.anchor, outer, 1)


def change(folder, name, crate, kind, number):
    """Makes the change of this kind and number; gives its name, and its function where benches reach it."""
    first, functions = folder / crate.get("first", FIRST), crate["functions"]
    if kind == "moves":
        what, moved = MOVES[number % len(MOVES)]
        first.write_text(moved(first.read_text()))
        return what, None
    if kind == "slower":
        function, every = functions[number % len(functions)], EVERY[number // len(functions) % len(EVERY)]
        what, made, module = f"{function.name} slower", lambda text: make_slower(text, function, every), SLOWER
    else:
        draw = random.Random(f"{name} {number}")
        function = draw.choice(functions)
        what, statement = draw.choice(list(equivalents(draw, function.argument, "crate::equivalent::rare").items()))
        what, made, module = f"{what} in {function.name}, seed '{name} {number}'", lambda text: with_first(text, function, statement), EQUIVALENT
    file = folder / function.file
    file.write_text(made(file.read_text()))
    first.write_text(first.read_text() + module)
    return what, function


def gate(folder, crate, arguments, *words):
    """One gate: its exit code, its verdict, and its receipt. `words` say what it compares."""
    verdict, receipt = folder.parent / "verdict.json", folder / "target" / "infergate" / "paired.json"
    verdict.unlink(missing_ok=True)
    command = [arguments.command, "infergate", "gate", "--memory-runs", "0", "--time-same-code", "--threshold", "2%", "--json", verdict, "--no-wait", *words]
    command += ["--cases", crate["cases"]] if "cases" in crate else []
    done = subprocess.run([str(word) for word in command], cwd=folder, text=True, capture_output=True)
    if not verdict.is_file():
        sys.exit(f"{folder}: no verdict:\n{done.stdout}{done.stderr}")
    return done.returncode, json.loads(verdict.read_text()), json.loads(receipt.read_text())


def linked(folder, crate, side):
    """The program of base or head as cargo linked it in the last gate against a commit."""
    programs = kept_at(folder).glob(f"{side}/target/*/deps/{crate['bench']}-{'[0-9a-f]' * 16}")
    return max(programs, key=lambda path: path.stat().st_mtime)


def kept_at(folder):
    """Where a gate keeps its builds."""
    return folder.parent / f"{folder.name}-base"


def failing(verdict):
    """The benches that fail, each with its change in percent."""
    return {row["subject"].removeprefix("bench:"): round(100 * (row["evidence"]["ratio"] - 1), 1) for row in verdict["rows"] if row["outcome"] == "regressed"}


def at_placements(receipt, case):
    """The median change of a case at each placement, in percent; one number where each side was timed as it was linked."""
    found = {}
    for block in (block for blocks in receipt["blocks"] for block in blocks["cases"] if block["id"] == case):
        placements = block.get("placements") or [0]
        times = len(block["base_ns"]) // len(placements)
        ratios = [math.log(head / base) for base, head in zip(block["base_ns"], block["head_ns"])]
        for at, placement in enumerate(placements):
            found.setdefault(placement, []).append(statistics.median(ratios[at * times:(at + 1) * times]))
    return [round(100 * math.expm1(statistics.median(found[placement])), 1) for placement in sorted(found)]


def named(receipt):
    """The functions of each case that was explained, the first one first."""
    def known(function):
        return {"name": function["name"], "inlined": (function.get("place") or "").rpartition(" at ")[0], "caller": function.get("caller") or ""}
    return {one["id"]: [known(function) for function in one["functions"]] for one in receipt.get("explained", []) if not one.get("why_not")}


def is_function(pattern, function):
    """Whether a function, or what was inlined into it, is what a change made slower, or a closure in it; of one of the standard library
    it counts who calls it."""
    is_std = re.match(r"<?(std|core|alloc)::", function["name"])
    names = [function["name"], function["inlined"], *([function["caller"]] if is_std else [])]
    last = [re.sub(r"(::\{(\{closure\}|closure#\d+)\})+$", "", re.sub(r"::<.*>$", "", name)).rsplit("::", 1)[-1] for name in names]
    return any(re.fullmatch(pattern, name) for name in last)


def is_reached(bench, function):
    """Whether a bench is one of those that reach the function."""
    patterns = function.reached if function else []
    return any(re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), bench.removeprefix("bench:")) for pattern in patterns)


def one(place, name, kind, number, arguments):
    """One commit and its gate."""
    crate = CRATES[name]
    folder = prepared(place, name, crate)
    git(folder, "reset", "--quiet", "--hard", "gated")
    what, function = change(folder, name, crate, kind, number)
    git(folder, "commit", "--quiet", "--all", "--message", what)
    explain = arguments.explain.split(",") if arguments.explain and kind == "moves" else []
    code, verdict, receipt = gate(folder, crate, arguments, "--against", "gated", "--bench-target", crate["bench"], "--base-folder", kept_at(folder),
                                  *(f"--explain={case}" for case in explain))
    again = {}
    if arguments.linked:
        _, of_linked, _ = gate(folder, crate, arguments, "--base-bin", linked(folder, crate, "base"), "--head-bin", linked(folder, crate, "head"))
        again = {"linked": failing(of_linked)}
    outcomes = {}
    for row in verdict["rows"]:
        outcomes.setdefault(row["subject"], set()).add(row["outcome"])
    reached = {bench: outcome for bench, outcome in outcomes.items() if is_reached(bench, function)}
    explained = {case: names for case, names in named(receipt).items() if kind == "moves" or case in reached}
    right = sum(bool(names) and is_function(function.names, names[0]) if function else not names for names in explained.values())
    return {"date": datetime.date.today().isoformat(), "crate": name, "kind": kind, "number": number, "what": what, **took(receipt), "exit": code,
            "verdict": verdict["verdict"],
            "failed": sorted(bench for bench, outcome in reached.items() if "regressed" in outcome),
            "layout": sorted(bench for bench, outcome in reached.items() if "layout" in outcome),
            "beside": sorted(bench for bench, outcome in outcomes.items() if "regressed" in outcome and bench not in reached),
            "at_placements": {bench: at_placements(receipt, bench) for bench in reached},
            "explained": len(explained), "right": right, "first": {case: names[0]["name"] if names else None for case, names in explained.items()}} | again


def table(results):
    """What is there, a line a crate."""
    print("\n| crate | only moved: gates | fail | inconclusive | slower: gates | fail | `layout` | inconclusive | pass | equivalent: gates | fail | inconclusive "
          "| other benches fail | right function first | nothing named where nothing is slower | seconds a gate after builds: median, most "
          "| as cargo links: benches that fail |")
    print("|" + "---|" * 17)
    for name in CRATES:
        of = {kind: [one for one in results if one["crate"] == name and one["kind"] == kind] for kind in ("moves", "slower", "equivalent")}
        every = list(itertools.chain(*of.values()))
        if not every:
            continue
        slower = ["fail" if one["failed"] else "layout" if one["layout"] else {3: "inconclusive"}.get(one["exit"], "pass") for one in of["slower"]]
        harmless = {kind: [len(of[kind]), sum(bool(one["failed"] + one["beside"]) for one in of[kind]), sum(one["exit"] == 3 for one in of[kind])]
                    for kind in ("moves", "equivalent")}
        shares = [f"{sum(one['right'] for one in of[kind])} of {sum(one['explained'] for one in of[kind])}" for kind in ("slower", "moves")]
        seconds = [one["seconds"] for one in every]
        cells = [name, *harmless["moves"], len(slower), *(slower.count(how) for how in ("fail", "layout", "inconclusive", "pass")), *harmless["equivalent"],
                 sum(bool(one["beside"]) for one in of["slower"]), *shares, f"{statistics.median(seconds):.0f}, {max(seconds)}",
                 "; ".join(f"{one['kind']} {one['number']}: {', '.join(f'{bench} {change:+} %' for bench, change in one['linked'].items()) or 'none'}"
                           for one in every if "linked" in one)]
        print("| " + " | ".join(map(str, cells)) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", type=pathlib.Path)
    parser.add_argument("--crates", default=",".join(CRATES))
    for kind in ("moves", "slower", "equivalent"):
        parser.add_argument(f"--{kind}", type=int, default=5, metavar="N", help="commits of this kind for each crate")
    parser.add_argument("--explain", default="", help="cases to explain in gates that only move code, by comma")
    parser.add_argument("--linked", action="store_true", help="gate each commit a second time, as cargo linked its programs")
    parser.add_argument("--place", type=pathlib.Path, default=ROOT / "target" / "layout-gates")
    parser.add_argument("--results", type=pathlib.Path, default=PARTS / "results.jsonl")
    arguments = parser.parse_args()
    kept = arguments.results.resolve()
    results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.is_file() else []
    if arguments.command is None:
        return table(results)
    arguments.command = arguments.command.resolve()
    place = arguments.place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    done = {(one["crate"], one["kind"], one["number"]) for one in results}
    for name in arguments.crates.split(","):
        for kind in ("moves", "slower", "equivalent"):
            for number in range(getattr(arguments, kind)):
                if (name, kind, number) not in done:
                    result = one(place, name, kind, number, arguments)
                    results.append(result)
                    with kept.open("a") as file:
                        file.write(json.dumps(result) + "\n")
                    print(json.dumps(result), flush=True)
    table(results)


if __name__ == "__main__":
    main()
