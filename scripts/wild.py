#!/usr/bin/env python3
"""Gates crates as they are published, and packages of repositories: each against itself, and against itself with one function slowed.

    python3 scripts/wild.py --command PATH                       # all of them, some hours
    python3 scripts/wild.py --command PATH --crates httparse,semver-1.0.27
    python3 scripts/wild.py --command PATH --repositories huggingface/candle:candle-nn,tracel-ai/burn:burn-store
    python3 scripts/wild.py --list                               # which crates they are

Which crates: every package of this repository's Cargo.lock whose published package has a bench target that uses criterion or divan. So
they are chosen by what infergate depends on, and not by what works; all of them are rows of the table. Nothing in them is changed but for
the commit that is to be found: of the functions whose names the benches call, public ones first, the one that they name most often (and all
others of that name) waits for a fifth of the time since its last call. So a bench that calls it once, and one that calls it a thousand
times, takes about a fifth longer. Names that most types have (`new`, `len`) are left out. Where that commit does not build, or nothing
fails, a second function is tried.
Features that a bench target requires are asked for by `--bench-features`. Of repositories those that --repositories names, as OWNER/NAME:PACKAGE,
are cloned from --clones.

What is finished stays in the folder --place, and the next call goes on there. PATH is a `cargo-infergate` that is built already. A quiet
machine is needed: other programs make gates inconclusive. With --cores each core gates a crate of its own.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import time
import tomllib

from repositories import begin, git

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCHES = ("criterion", "codspeed-criterion-compat", "divan")
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


def sources():
    """The packages as they are published, fetched by cargo."""
    subprocess.run(["cargo", "fetch", "--quiet", "--locked"], cwd=ROOT, check=True)
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    return [folder for folder in (home / "registry" / "src").iterdir() if folder.is_dir()]


def file_name(crate):
    """A crate's name without what is special in a path."""
    return re.sub("[/:]", "+", crate)


def crate(name, folder, clone=None):
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


def crates():
    """The published packages that have such benches."""
    registries, found = sources(), []
    for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]:
        name = f"{package['name']}-{package['version']}"
        folders = [registry / name for registry in registries if (registry / name / "Cargo.toml").is_file()]
        if "source" in package and folders:
            found.append(crate(name, folders[0]))
    return [one for one in found if one["uses"] and one["targets"]]


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
        yield crate(f"{repository}:{package}", folder, clone)


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
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(crate["folder"], folder)
        for left in (".cargo-ok", ".cargo-checksum.json", "Cargo.lock"):
            (folder / left).unlink(missing_ok=True)
        (folder / ".gitignore").write_text("/target\n")
        manifest = folder / "Cargo.toml"
        if "[workspace]" not in manifest.read_text():
            manifest.write_text(f"{manifest.read_text()}\n[workspace]\n")
        begin(folder, "published")
    git(folder, "reset", "--quiet", "--hard", "published")
    return folder


def gate(place, crate, arguments, core, *words):
    """One gate, on one core where one is named. What it said, and how long it took."""
    own = file_name(crate["name"])
    verdict = place / f"{own}.json"
    verdict.unlink(missing_ok=True)
    command = [arguments.command, "infergate", "gate", "--against", "published", "--bench-package", crate["package"], "--bench-target", "*",
               "--budget", arguments.budget, "--no-wait", "--no-explain", "--json", verdict, "--base-folder", place / f"{own}-base", *words]
    if crate["features"]:
        command += ["--bench-features", ",".join(crate["features"])]
    if core is not None:
        command = ["taskset", "-c", core, *command]
    began = time.monotonic()
    try:
        done = subprocess.run([str(word) for word in command], cwd=folder_of(place, crate), text=True, capture_output=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return {"verdict": "ended", "why": f"took more than {MOST_SECONDS} s", "seconds": MOST_SECONDS, "cases": 0}
    found = {"seconds": round(time.monotonic() - began), "exit": done.returncode, "cases": 0, "why": ""}
    if not verdict.is_file():
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        return found | {"verdict": "error", "why": (errors or ["no verdict and no error"])[-1].removeprefix("error: ")[:200]}
    said = json.loads(verdict.read_text())
    timed = [row for row in said["rows"] if row["evidence"]["kind"] == "time"] if said["rows"] else []
    times = [row["evidence"]["base_ns"] for row in timed if row["evidence"].get("base_ns")]
    return found | {"verdict": said["verdict"], "cases": len({row["subject"] for row in timed}),
                    "slowest_ns": max(times, default=None),
                    "called": sorted({row["subject"] for row in said["rows"] if row["outcome"] == "regressed"}),
                    "open": sum(row["outcome"] in ("inconclusive", "unstable") for row in timed)}


def slowed(folder, slowest_ns):
    """The functions that may be slowed, the one that the benches name most often first: its name, and the new text of each file that has one."""
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
            texts[path] = text[:at] + WAIT % slowest_ns + text[at:]
        found.append((name, texts))
    return found


def against_itself(place, crate, arguments, core):
    """A gate in which nothing changed."""
    prepared(place, crate)
    found = gate(place, crate, arguments, core, "--time-same-code")
    return {"crate": crate["name"], "kind": "itself", "uses": crate["uses"], "targets": len(crate["targets"]), **found}


def against_slower(place, crate, arguments, core, slowest_ns):
    """A gate in which one function changed."""
    found = {"verdict": "not tried", "seconds": 0, "why": "no function that the benches name"}
    for function, texts in slowed(prepared(place, crate), slowest_ns):
        folder = prepared(place, crate)
        for path, text in texts.items():
            path.write_text(text)
        git(folder, "commit", "--quiet", "--all", "--message", f"{function} is slower")
        found = gate(place, crate, arguments, core) | {"function": function}
        # One that is called beside the loop changes nothing that is timed.
        if found.get("called"):
            break
    shutil.rmtree(place / f"{file_name(crate['name'])}-base", ignore_errors=True)
    prepared(place, crate)
    return {"crate": crate["name"], "kind": "slower", **found}


def table(results):
    """A row a crate."""
    print("\n| crate | uses | targets, benches | against itself | one function slower | seconds, both with builds | in the way |\n|---|---|---|---|---|---|---|")
    right = 0
    itself, slower = ({row["crate"]: row for row in results if row["kind"] == kind} for kind in ("itself", "slower"))
    for crate, one in itself.items():
        other = slower.get(crate, {"verdict": "not tried", "seconds": 0})
        still = f", {one['open']} open" if one.get("open") else ""
        print(f"| {crate} | {one['uses']} | {one['targets']}, {one['cases']} | {one['verdict']}{still} | {other['verdict']} "
              f"| {one['seconds']}, {other['seconds']} | {one['why'] or other.get('why', '')} |")
        right += one["verdict"] == "pass" and other["verdict"] == "regressed"
    print(f"\n{right} of {len(itself)} right")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", type=pathlib.Path)
    parser.add_argument("--crates", default="", help="names, with or without their version; left out: all")
    parser.add_argument("--repositories", default="", help="OWNER/NAME:PACKAGE, with commas between them: these in place of crates")
    parser.add_argument("--clones", default="https://github.com", help="where OWNER/NAME is cloned from; a folder, too")
    parser.add_argument("--budget", default="4m", help="of each gate")
    parser.add_argument("--cores", default="", help="0,1: a gate on each of them at once; left out: one gate on all")
    parser.add_argument("--itself", action="store_true", help="only the gates in which nothing changed")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--place", type=pathlib.Path, default=ROOT / "target" / "wild")
    arguments = parser.parse_args()
    place = arguments.place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    if arguments.repositories:
        chosen = list(repositories(arguments.repositories.split(","), arguments.clones, place))
    else:
        wanted = [name for name in arguments.crates.split(",") if name]
        chosen = [one for one in crates() if not wanted or any(one["name"] in (name, f"{name}-{one['name'].rsplit('-', 1)[1]}") for name in wanted)]
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

    def both(crate):
        """Its gates that are left, one after the other on one core."""
        core, found = free.get(), {row["kind"]: row for row in results if row["crate"] == crate["name"]}
        try:
            for kind in ("itself",) if arguments.itself else ("itself", "slower"):
                if kind in found:
                    continue
                if kind == "itself":
                    found[kind] = against_itself(place, crate, arguments, core)
                elif found["itself"].get("slowest_ns"):
                    found[kind] = against_slower(place, crate, arguments, core, found["itself"]["slowest_ns"])
                else:
                    continue
                line = json.dumps(found[kind])
                with kept.open("a") as file:
                    file.write(line + "\n")
                print(line, file=sys.stderr, flush=True)
            return list(found.values())
        finally:
            free.put(core)

    with concurrent.futures.ThreadPoolExecutor(free.qsize()) as pool:
        results = [row for rows in pool.map(both, chosen) for row in rows]
    results.sort(key=lambda row: row["crate"])
    table(results)


if __name__ == "__main__":
    main()
