#!/usr/bin/env python3
"""Changes in published crates, found by the gate: runs each case and writes what it said into docs/CASES.md.

    python3 scripts/cases.py            # all of them; each builds its crate twice
    python3 scripts/cases.py NAME       # one
"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "CASES.md"

# Folder below scripts/cases, the dependency, the version that comes in place of the locked one.
CASES = [
    ("tokenizers-reload", "tokenizers", "0.22.2", "0.23.2"),
    ("candle-broadcast", "candle-core", "0.8.4", "0.9.0"),
]


def run(folder, *command, **more):
    return subprocess.run(command, cwd=folder, check=True, text=True, **more)


def gate(name, crate, base, head):
    """Copies the case to a repository of its own and gates it with the other version. Gives the report."""
    folder = ROOT / "target" / "cases" / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "scripts" / "cases" / name, folder)
    manifest = folder / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("INFERGATE", str(ROOT)))
    (folder / ".gitignore").write_text("target\n")
    run(folder, "cargo", "generate-lockfile", "--quiet")
    run(folder, "git", "init", "--quiet", "--initial-branch=main")
    run(folder, "git", "add", "-A")
    author = ["-c", "user.name=infergate", "-c", "user.email=infergate@localhost"]
    run(folder, "git", *author, "commit", "--quiet", "-m", f"{crate} {base}")
    # The case is measured as most programs run: nobody sets the threads of candle.
    quiet = {key: value for key, value in os.environ.items() if key not in ("RAYON_NUM_THREADS", "CARGO_TARGET_DIR")}
    command = [os.environ.get("INFERGATE", "cargo-infergate"), "infergate", "gate", "--swap", f"{crate}={head}"]
    command += ["--base-folder", str(folder.parent / f"{name}-base")]
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, env=quiet)
    if not done.stdout:
        sys.exit(f"error: {name}: the gate gave no verdict (exit {done.returncode}); its words are above")
    return done.stdout.strip()


def splice(name, crate, base, head, report):
    """Puts a report between its markers."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    page = PAGE.read_text()
    before, rest = page.split(begin, 1)
    after = rest.split(end, 1)[1]
    block = f"{begin}\n```console\npython3 scripts/cases.py {name}   # gate --swap {crate}={head}, locked is {base}\n```\n\n```text\n{report}\n```\n{end}"
    PAGE.write_text(before + block + after)


def main():
    wanted = sys.argv[1:]
    unknown = set(wanted) - {case[0] for case in CASES}
    if unknown:
        sys.exit(f"error: no case is called {', '.join(sorted(unknown))}; there are {', '.join(case[0] for case in CASES)}")
    for name, crate, base, head in CASES:
        if not wanted or name in wanted:
            print(f"{name}: {crate} {base} to {head}", file=sys.stderr)
            splice(name, crate, base, head, gate(name, crate, base, head))


main()
