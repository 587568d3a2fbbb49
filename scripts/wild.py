#!/usr/bin/env python3
"""Gates crates as they are published: each against itself, and against itself built with less optimisation.

    python3 scripts/wild.py --command PATH                       # all of them, some hours
    python3 scripts/wild.py --command PATH --crates httparse,semver-1.0.27
    python3 scripts/wild.py --list                               # which they are

Which crates: every package of this repository's Cargo.lock whose published package has a bench target that uses criterion or divan. So
they are chosen by what infergate depends on, and not by what works; all of them are rows of the table. Nothing in them is changed but for
the commit that is to be found: `[profile.bench] opt-level = 1`. Features that a bench target requires are asked for by `--bench-features`.

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

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCHES = ("criterion", "codspeed-criterion-compat", "divan")
# A build and a gate that take longer are ended.
MOST_SECONDS = 1800


def sources():
    """The packages as they are published, fetched by cargo."""
    subprocess.run(["cargo", "fetch", "--quiet", "--locked"], cwd=ROOT, check=True)
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    return [folder for folder in (home / "registry" / "src").iterdir() if folder.is_dir()]


def crates():
    """Name and version, folder, what its benches use, its bench targets, and the features that they need."""
    registries, found = sources(), []
    for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]:
        name = f"{package['name']}-{package['version']}"
        folders = [registry / name for registry in registries if (registry / name / "Cargo.toml").is_file()]
        if "source" not in package or not folders:
            continue
        manifest = tomllib.loads((folders[0] / "Cargo.toml").read_text())
        dependencies = dict(manifest.get("dev-dependencies", {}))
        for target in manifest.get("target", {}).values():
            dependencies |= target.get("dev-dependencies", {})
        uses = {}
        for key, wanted in dependencies.items():
            wanted = wanted if isinstance(wanted, dict) else {"version": wanted}
            if wanted.get("package", key) in BENCHES:
                uses[key] = wanted.get("version", "?")
        targets, features = [], set()
        for bench in manifest.get("bench", []):
            path = folders[0] / bench.get("path", f"benches/{bench['name']}.rs")
            if path.is_file() and re.search("criterion|divan", path.read_text(errors="replace")):
                targets.append(bench["name"])
                features.update(bench.get("required-features", []))
        if uses and targets:
            found.append((name, folders[0], " ".join(f"{key} {version}" for key, version in uses.items()), targets, sorted(features)))
    return found


def git(folder, *words):
    """git with a name of its own."""
    who = {f"GIT_{role}_{what}": text for role in ("AUTHOR", "COMMITTER") for what, text in (("NAME", "a"), ("EMAIL", "a@localhost"))}
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env=os.environ | who)


def prepared(place, name, published):
    """The package in a repository of its own."""
    folder = place / name
    if not (folder / ".git").is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(published, folder)
        for left in (".cargo-ok", ".cargo-checksum.json", "Cargo.lock"):
            (folder / left).unlink(missing_ok=True)
        (folder / ".gitignore").write_text("/target\n")
        manifest = folder / "Cargo.toml"
        if "[workspace]" not in manifest.read_text():
            manifest.write_text(f"{manifest.read_text()}\n[workspace]\n")
        git(folder, "init", "--quiet")
        git(folder, "add", "--all", "--force")
        git(folder, "commit", "--quiet", "--message", "published")
        git(folder, "tag", "published")
    git(folder, "reset", "--quiet", "--hard", "published")
    return folder


def gate(folder, arguments, core, features, *words):
    """One gate, on one core where one is named. What it said, and how long it took."""
    verdict = folder.parent / f"{folder.name}.json"
    verdict.unlink(missing_ok=True)
    command = [arguments.command, "infergate", "gate", "--against", "published", "--bench-target", "*",
               "--budget", arguments.budget, "--no-wait", "--json", verdict, "--base-folder", folder.parent / f"{folder.name}-base", *words]
    if features:
        command += ["--bench-features", ",".join(features)]
    if core is not None:
        command = ["taskset", "-c", core, *command]
    began = time.monotonic()
    try:
        done = subprocess.run([str(word) for word in command], cwd=folder, text=True, capture_output=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return {"verdict": "ended", "why": f"took more than {MOST_SECONDS} s", "seconds": MOST_SECONDS, "cases": 0}
    found = {"seconds": round(time.monotonic() - began), "exit": done.returncode, "cases": 0, "why": ""}
    if not verdict.is_file():
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        return found | {"verdict": "error", "why": (errors or ["no verdict and no error"])[-1].removeprefix("error: ")[:200]}
    said = json.loads(verdict.read_text())
    timed = [row for row in said["rows"] if row["evidence"]["kind"] == "time"] if said["rows"] else []
    return found | {"verdict": said["verdict"], "cases": len({row["subject"] for row in timed}),
                    "open": sum(row["outcome"] in ("inconclusive", "unstable") for row in timed)}


def one(place, crate, arguments, core=None):
    """Both gates of one crate."""
    name, published, uses, targets, features = crate
    folder = prepared(place, name, published)
    itself = gate(folder, arguments, core, features, "--time-same-code")
    slower = {"verdict": "not tried", "seconds": 0}
    if itself["verdict"] not in ("error", "ended"):
        manifest = folder / "Cargo.toml"
        text = re.sub(r"(?ms)^\[profile\.bench\]\n.*?(?=^\[|\Z)", "", manifest.read_text())
        manifest.write_text(f"{text}\n[profile.bench]\nopt-level = 1\n")
        git(folder, "commit", "--quiet", "--all", "--message", "less optimisation")
        slower = gate(folder, arguments, core, features)
    shutil.rmtree(place / f"{name}-base", ignore_errors=True)
    return {"crate": name, "uses": uses, "targets": len(targets), "itself": itself, "slower": slower}


def table(results):
    """A row a crate."""
    print("\n| crate | uses | targets, benches | against itself | built with less optimisation | seconds, both with builds | in the way |\n|---|---|---|---|---|---|---|")
    for row in results:
        itself, slower = row["itself"], row["slower"]
        print(f"| {row['crate']} | {row['uses']} | {row['targets']}, {itself['cases']} | {itself['verdict']} | {slower['verdict']} "
              f"| {itself['seconds']}, {slower['seconds']} | {itself['why'] or slower.get('why', '')} |")
    right = sum(row["itself"]["verdict"] == "pass" and row["slower"]["verdict"] == "regressed" for row in results)
    print(f"\n{right} of {len(results)} right")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", type=pathlib.Path)
    parser.add_argument("--crates", default="", help="names, with or without their version; left out: all")
    parser.add_argument("--budget", default="4m", help="of each gate")
    parser.add_argument("--cores", default="", help="0,1: a gate on each of them at once; left out: one gate on all")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--place", type=pathlib.Path, default=ROOT / "target" / "wild")
    arguments = parser.parse_args()
    wanted = [name for name in arguments.crates.split(",") if name]
    chosen = [crate for crate in crates() if not wanted or any(crate[0] in (name, f"{name}-{crate[0].rsplit('-', 1)[1]}") for name in wanted)]
    if arguments.list or not arguments.command:
        for name, _, uses, targets, _ in chosen:
            print(name, uses, ",".join(targets), sep="\t")
        return
    arguments.command = arguments.command.resolve()
    place = arguments.place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    kept = place / "results.jsonl"
    results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.is_file() else []
    left = [crate for crate in chosen if all(row["crate"] != crate[0] for row in results)]
    cores = [core for core in arguments.cores.split(",") if core] or [None]
    free = queue.SimpleQueue()
    for core in cores:
        free.put(core)

    def alone(crate):
        core = free.get()
        try:
            return one(place, crate, arguments, core)
        finally:
            free.put(core)

    with concurrent.futures.ThreadPoolExecutor(len(cores)) as pool:
        for done in concurrent.futures.as_completed([pool.submit(alone, crate) for crate in left]):
            results.append(done.result())
            with kept.open("a") as file:
                file.write(json.dumps(results[-1]) + "\n")
            print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    results.sort(key=lambda row: row["crate"])
    table([row for row in results if not wanted or any(row["crate"] == crate[0] for crate in chosen)])


if __name__ == "__main__":
    main()
