#!/usr/bin/env python3
"""Gates crates as they are published and packages of repositories: three commits whose verdict is known, or the newest commits there.

    python3 scripts/wild.py --command PATH                       # all crates, some hours
    python3 scripts/wild.py --command PATH --crates httparse,semver-1.0.28,jiter=0.19.0 --budget 60s
    python3 scripts/wild.py --command PATH --repositories huggingface/candle:candle-nn,tracel-ai/burn:burn-store
    python3 scripts/wild.py --command PATH --repositories simd-lite/simd-json:simd-json --commits 12
    python3 scripts/wild.py --list                               # which crates they are

The crates are every package of this repository's Cargo.lock whose published package has a bench target that uses criterion or divan,
whether infergate works there or not. --crates takes some of them, or any published crate whose version it names. --repositories takes
packages of repositories in their place, as OWNER/NAME:PACKAGE, cloned from --clones. Each has up to three gates (--kinds):

- itself: nothing changes, and all benches are timed (`--time-same-code`). It should pass.
- slower: one function waits for a fifth of the time since its last call, so a bench that calls it takes about a fifth longer, however
  often it does. It should fail.
- equivalent: the same function gets a branch that nothing takes, or another change without more work. It should pass.

The function is the one that the benches name most often, with all others of that name. Public ones come first, and names that most types
have (`new`, `len`) are skipped. If nothing fails, `slower` tries a second function. The crate's name is the seed that draws the equivalent
change. The table has the largest limit at which a case of each gate passed, and names the cases that passed above 5 %.

--commits N gates the N newest commits of each repository that change what the package is built from, each against its parent.

The next call resumes after the last gate that is in --place, where each gate's verdict and output stay, too. PATH is a `cargo-infergate`
that is built already. Features that bench targets require are passed on. A quiet machine is needed: other programs make gates inconclusive.
With --cores each core gates another crate.
"""
import argparse
import concurrent.futures
import json
import pathlib
import queue
import random
import re
import shutil
import subprocess
import sys
import tomllib

from repositories import RARE, begin, copy_published, equivalents, git, in_registry, published, took

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCHES = ("criterion", "codspeed-criterion-compat", "divan")
KINDS = {"itself": "pass", "slower": "regressed", "equivalent": "pass"}
# Passing at a larger limit says little.
WIDE = 1.05
# A build and a gate that take longer are ended.
MOST_SECONDS = 1800
# Functions that are tried for one that is to be slower; those of such names are another type's more often than not.
FUNCTIONS = 2
COMMON = {"new", "default", "clone", "from", "into", "len", "is_empty", "get", "insert", "push", "pop", "clear", "iter", "next", "unwrap",
          "as_mut_ptr", "as_ptr", "as_ref", "as_mut", "as_slice", "as_str", "to_string", "to_vec", "map", "collect", "write", "read"}
FUNCTION = re.compile(r"^[ \t]*(pub )?(?:unsafe )?fn (\w+)\b[^;{}]*\{", re.MULTILINE)
# At most a fifth of the slowest bench: the time since the last call can be anything.
WAIT = """
{
    extern crate std as slow;
    static BEGAN: slow::sync::OnceLock<slow::time::Instant> = slow::sync::OnceLock::new();
    static LAST: slow::sync::atomic::AtomicU64 = slow::sync::atomic::AtomicU64::new(0);
    let now = || BEGAN.get_or_init(slow::time::Instant::now).elapsed().as_nanos() as u64;
    let begins = now();
    let until = begins + begins.saturating_sub(LAST.load(slow::sync::atomic::Ordering::Relaxed)).min(%d) / 5;
    while now() < until {}
    LAST.store(now(), slow::sync::atomic::Ordering::Relaxed);
}
"""


# A function's arguments need not be references; a static's address the compiler does not know either.
NOTHING = """
{
%s    static HERE: u8 = 0;
    let here = &HERE;
    %s
}
"""


def file_name(crate):
    """A crate's name without what is special in a path."""
    return re.sub("[/:]", "+", crate)


def described(name, folder, clone=None):
    """What is known of the package in that folder: its name, what its benches use, its bench targets, and the features that they need."""
    manifest = tomllib.loads((folder / "Cargo.toml").read_text())
    dependencies = dict(manifest.get("dev-dependencies", {}))
    for target in manifest.get("target", {}).values():
        dependencies |= target.get("dev-dependencies", {})
    uses = {}
    for key, wanted in dependencies.items():
        wanted = wanted if isinstance(wanted, dict) else {"version": wanted}
        if wanted.get("package", key) in BENCHES:
            uses[key] = wanted.get("version", "(its workspace's)")
    targets, features = [], set()
    for bench in manifest.get("bench", []):
        path = folder / bench.get("path", f"benches/{bench['name']}.rs")
        if path.is_file() and re.search("criterion|divan", path.read_text(errors="replace")):
            targets.append(bench["name"])
            features.update(bench.get("required-features", []))
    uses = " ".join(f"{key} {version}" for key, version in uses.items())
    return {"name": name, "package": manifest["package"]["name"], "folder": folder, "clone": clone, "uses": uses, "targets": targets,
            "features": sorted(features)}


def crates(wanted, place):
    """The published packages that have such benches: of Cargo.lock those that are wanted or all, and wanted ones that are not in it."""
    subprocess.run(["cargo", "fetch", "--quiet", "--locked"], cwd=ROOT, check=True)
    locked = [(one["name"], one["version"]) for one in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"] if "source" in one]
    chosen = [] if wanted else locked
    for one in wanted:
        name, version = re.fullmatch(r"(.+?)(?:[-=](\d.*))?", one).groups()
        of_lock = [pair for pair in locked if name == pair[0] and version in (None, pair[1])]
        if not of_lock and not version:
            sys.exit(f"error: {name} is not in Cargo.lock; name its version: {name}=1.2.3")
        chosen += of_lock or [(name, version)]
    for name, version in chosen:
        folder = in_registry(f"{name}-{version}") or published(place / "fetch", name, version)
        found = described(f"{name}-{version}", folder)
        if found["uses"] and found["targets"]:
            yield found
        elif wanted:
            sys.exit(f"error: {found['name']} has no bench target that uses criterion or divan")


def repositories(wanted, clones, place):
    """The packages of repositories, each in a clone of its own with the tag `published` on its newest commit."""
    for repository, package in (one.split(":") for one in wanted):
        clone = place / file_name(f"{repository}:{package}")
        if not (clone / ".git").is_dir():
            git(place, "clone", "--quiet", f"{clones}/{repository}", clone)
        if "published" not in git(clone, "tag").split():
            git(clone, "tag", "published")
        git(clone, "reset", "--quiet", "--hard", "published")
        folder = folder_in(clone, package)
        if folder is None:
            sys.exit(f"error: {repository} has no package {package}; see `cargo metadata --no-deps` there")
        yield described(f"{repository}:{package}", folder, clone)


def folder_in(clone, package):
    """Where a package lies in a clone."""
    for path in git(clone, "ls-files", "Cargo.toml", "*/Cargo.toml").split():
        try:
            manifest = tomllib.loads((clone / path).read_text())
        except tomllib.TOMLDecodeError:
            # A template of one.
            continue
        if manifest.get("package", {}).get("name") == package:
            return (clone / path).parent
    return None


def folder_of(place, crate):
    """Where the package lies that is gated."""
    return crate["folder"] if crate["clone"] else place / crate["name"]


def prepared(place, crate):
    """The package as it was published, in a repository of its own or in the clone."""
    folder = folder_of(place, crate)
    if not crate["clone"] and not (folder / ".git").is_dir():
        copy_published(crate["folder"], folder)
        begin(folder, "published")
    git(folder, "reset", "--quiet", "--hard", "published")
    return folder


def gate(place, crate, kind, arguments, core, *words, against="published"):
    """One gate, on one core where one is named: its verdict, and how long it took. What it wrote stays in files named after crate and kind."""
    own = file_name(crate["name"])
    verdict, receipt = place / f"{own}-{kind}.json", place / f"{own}-{kind}-receipt.json"
    for file in (verdict, receipt):
        file.unlink(missing_ok=True)
    command = [arguments.command, "infergate", "gate", "--against", against, "--bench-package", crate["package"], "--bench-target", "*", "--budget", arguments.budget,
               "--no-wait", "--no-explain", "--json", verdict, "--out", receipt, "--base-folder", place / f"{own}-base", *words]
    if crate["features"]:
        command += ["--bench-features", ",".join(crate["features"])]
    if core is not None:
        command = ["taskset", "-c", core, *command]
    try:
        done = subprocess.run([str(word) for word in command], cwd=folder_of(place, crate), text=True, capture_output=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return {"verdict": "ended", "why": f"took more than {MOST_SECONDS} s"}
    (place / f"{own}-{kind}.log").write_text(done.stdout + done.stderr)
    found = {"exit": done.returncode, "why": ""}
    if not verdict.is_file():
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        return found | {"verdict": "error", "why": (errors or ["no verdict and no error"])[-1].removeprefix("error: ")[:200]}
    if receipt.is_file():
        found |= took(json.loads(receipt.read_text()))
    return found | seen(json.loads(verdict.read_text()))


def seen(verdict):
    """What a row of the table has of a verdict."""
    rows = [row for row in verdict["rows"] if row["evidence"]["kind"] == "time"]
    timed = [row for row in rows if row["evidence"].get("base_ns")]
    skipped = [note["text"][:200] for note in verdict["notes"] if "is not compared" in note.get("text", "")]
    limits = {row["subject"]: row["evidence"]["threshold"] for row in timed
              if row["outcome"] in ("pass", "within_limit") and row["evidence"].get("statistic", "median") == "median"}
    return {"verdict": verdict["verdict"], "why": "; ".join(skipped), "cases": len({row["subject"] for row in rows}), "reached": len({row["subject"] for row in timed}),
            "slowest_ns": max((row["evidence"]["base_ns"] for row in timed), default=None),
            "failed": sorted({row["subject"] for row in verdict["rows"] if row["outcome"] == "regressed"}),
            "inconclusive": sorted({row["subject"] for row in timed if row["outcome"] in ("inconclusive", "unstable")}),
            "limit": max(limits.values(), default=None), "wide": {case: limit for case, limit in limits.items() if limit > WIDE}}


def changed(folder, block):
    """The functions that may change, the one that the benches name most often first: its name, and each file's text with that block in it."""
    benches = "\n".join(path.read_text(errors="replace") for path in sorted((folder / "benches").rglob("*.rs")))
    places = {}
    for path in sorted((folder / "src").rglob("*.rs")):
        for function in FUNCTION.finditer(path.read_text(errors="replace")):
            places.setdefault(function.group(2), []).append((path, function.end(), bool(function.group(1))))
    named = {name: len(re.findall(rf"\b{name}\(", benches)) for name in places.keys() - COMMON}
    is_public = {name: any(public for _, _, public in places[name]) for name in named}
    best = sorted((name for name in named if named[name]), key=lambda name: (not is_public[name], -named[name], name))
    found = []
    for name in best[:FUNCTIONS]:
        texts = {}
        # From the end, so that places before it stay where they are.
        for path, at, _ in reversed(places[name]):
            text = texts.get(path) or path.read_text(errors="replace")
            texts[path] = text[:at] + block + text[at:]
        found.append((name, texts))
    return found


def against_changed(place, crate, kind, arguments, core, what, block, function=None):
    """A gate in which that function changed, or the first one whose change fails."""
    found = {"verdict": "not tried", "why": "no function that the benches name"}
    for name, texts in changed(prepared(place, crate), block):
        if function not in (None, name):
            continue
        folder = prepared(place, crate)
        for path, text in texts.items():
            path.write_text(text)
        git(folder, "commit", "--quiet", "--all", "--message", f"{name}: {what}")
        found = gate(place, crate, kind, arguments, core) | {"function": name, "what": what}
        # One that is called beside the loop changes nothing that is timed.
        if found.get("failed"):
            break
    prepared(place, crate)
    return found


def of_kind(kind, place, crate, arguments, core, found):
    """The gate of that kind; `found` has those before it."""
    if kind == "itself":
        prepared(place, crate)
        return {"uses": crate["uses"], "targets": len(crate["targets"]), **gate(place, crate, kind, arguments, core, "--time-same-code")}
    if kind == "slower":
        return against_changed(place, crate, kind, arguments, core, "slower", WAIT % found["itself"]["slowest_ns"])
    draw = random.Random(crate["name"])
    what, statement = draw.choice(list(equivalents(draw, "here", "rare").items()))
    return against_changed(place, crate, kind, arguments, core, what, NOTHING % (RARE, statement), found.get("slower", {}).get("function"))


def newest(clone, folder, count):
    """The newest commits of the main line that change the package's src, or that of a package of the clone that it is built from."""
    folders, left = [], [folder]
    while left:
        folders.append(left.pop())
        metadata = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=folders[-1], check=True, capture_output=True, text=True)
        package = next(one for one in json.loads(metadata.stdout)["packages"] if pathlib.Path(one["manifest_path"]).parent == folders[-1])
        paths = [pathlib.Path(one["path"]) for one in package["dependencies"] if one.get("path") and one["kind"] != "dev"]
        left += [path for path in paths if path not in folders + left]
    sources = [f"{path.relative_to(clone)}/src" for path in folders]
    return git(clone, "log", "--first-parent", "--format=%h", f"--max-count={count}", "published", "--", *sources).split()


def of_commit(commit, place, crate, arguments, core):
    """The gate of a commit against its parent."""
    git(crate["clone"], "reset", "--quiet", "--hard", commit)
    now = described(crate["name"], folder_in(crate["clone"], crate["package"]), crate["clone"])
    found = {"subject": git(crate["clone"], "log", "-1", "--format=%s").strip(), **gate(place, now, commit, arguments, core, against=f"{commit}^")}
    prepared(place, crate)
    return found


def seconds(row):
    """Of builds, and after them."""
    return f"; {row['builds_s']} + {row['seconds']} s" if "seconds" in row else ""


def table(results):
    """A row a crate."""
    print(f"\n| crate | uses | targets, benches | {' | '.join(KINDS)} | passes at more than 5 % | in the way |\n|{'---|' * 8}")
    of_crates = {}
    for row in results:
        of_crates.setdefault(row["crate"], {})[row["kind"]] = row
    for crate, rows in of_crates.items():
        itself, cells = rows["itself"], []
        for kind in KINDS:
            row = rows.get(kind, {"verdict": "not tried"})
            function = f" `{row['function']}`: {len(row.get('failed', []))} of {row.get('reached', 0)}" if "function" in row else ""
            still = f", {len(row['inconclusive'])} inconclusive" if row.get("inconclusive") else ""
            limit = f", limit {percent(row['limit'])}" if row.get("limit") else ""
            cells.append(f"{row['verdict']}{function}{still}{limit}{seconds(row)}")
        wide = [f"{kind}: {', '.join(f'{case} {percent(limit)}' for case, limit in row['wide'].items())}" for kind, row in rows.items() if row.get("wide")]
        why = "; ".join(f"{kind}: {row['why']}" for kind, row in rows.items() if row.get("why"))
        print(f"| {crate} | {itself['uses']} | {itself['targets']}, {itself.get('cases', 0)} | {' | '.join(cells)} | {'; '.join(wide)} | {why} |")
    for kind, right in KINDS.items():
        rows = [row for row in results if row["kind"] == kind]
        print(f"\n{kind}: {sum(row['verdict'] == right for row in rows)} of {len(rows)} {right}")


def percent(ratio):
    """A limit as people write it."""
    return f"{100 * (ratio - 1):.1f} %"


def table_of_commits(results):
    """A row a commit."""
    print(f"\n| package | commit | subject | cases reached | verdict; seconds of builds + after | fails | in the way |\n|{'---|' * 7}")
    for row in results:
        print(f"| {row['crate']} | {row['commit']} | {row['subject'].replace('|', ' ')} | {row.get('reached', 0)} of {row.get('cases', 0)} | {row['verdict']}{seconds(row)} "
              f"| {', '.join(row.get('failed', []))} | {row['why']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", type=pathlib.Path)
    parser.add_argument("--crates", default="", help="NAME, NAME-VERSION or NAME=VERSION, with commas between them; left out: all of Cargo.lock")
    parser.add_argument("--repositories", default="", help="OWNER/NAME:PACKAGE, with commas between them: these in place of crates")
    parser.add_argument("--clones", default="https://github.com", help="where OWNER/NAME is cloned from; a folder, too")
    parser.add_argument("--commits", type=int, default=0, help="of each repository: gate that many commits")
    parser.add_argument("--kinds", default=",".join(KINDS), help="the gates of each crate")
    parser.add_argument("--budget", default="4m", help="of each gate")
    parser.add_argument("--cores", default="", help="0,1: a gate on each of them at once; left out: one gate on all")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--place", type=pathlib.Path, default=ROOT / "target" / "wild")
    arguments = parser.parse_args()
    place = arguments.place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    if arguments.repositories:
        chosen = list(repositories(arguments.repositories.split(","), arguments.clones, place))
    else:
        chosen = list(crates([name for name in arguments.crates.split(",") if name], place))
    if arguments.list or not arguments.command:
        for one in chosen:
            print(one["name"], one["uses"], ",".join(one["targets"]), sep="\t")
        return
    arguments.command = arguments.command.resolve()
    kept = place / "results.jsonl"
    results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.is_file() else []
    free = queue.SimpleQueue()
    for core in [core for core in arguments.cores.split(",") if core] or [None]:
        free.put(core)

    def gates(crate):
        """Its gates that are left, one after the other on one core."""
        core = free.get()
        wanted = newest(crate["clone"], crate["folder"], arguments.commits) if arguments.commits else arguments.kinds.split(",")
        key = "commit" if arguments.commits else "kind"
        found = {row[key]: row for row in results if row["crate"] == crate["name"] and key in row}
        try:
            for one in wanted:
                if one in found or one in ("slower", "equivalent") and not found.get("itself", {}).get("slowest_ns"):
                    continue
                row = of_commit(one, place, crate, arguments, core) if arguments.commits else of_kind(one, place, crate, arguments, core, found)
                found[one] = {"crate": crate["name"], key: one, **row}
                line = json.dumps(found[one])
                with kept.open("a") as file:
                    file.write(line + "\n")
                print(line, file=sys.stderr, flush=True)
            shutil.rmtree(place / f"{file_name(crate['name'])}-base", ignore_errors=True)
            return list(found.values())
        finally:
            free.put(core)

    with concurrent.futures.ThreadPoolExecutor(free.qsize()) as pool:
        results = [row for rows in pool.map(gates, chosen) for row in rows]
    (table_of_commits if arguments.commits else table)(results)


if __name__ == "__main__":
    main()
