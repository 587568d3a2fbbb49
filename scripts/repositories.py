"""Shared by the scripts that gate other code: git without the user's settings, published crates, and changes that do no more work."""
import os
import pathlib
import shutil
import subprocess
import sys

SOMEBODY = {f"GIT_{role}_{what}": text for role in ("AUTHOR", "COMMITTER") for what, text in (("NAME", "somebody"), ("EMAIL", "somebody@localhost"))}


def environment(**more):
    """Nothing of the user's own settings; `more` in it besides."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("INFERGATE_", "GIT_", "CARGO_TARGET"))}
    return own | SOMEBODY | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} | more


def git(folder, *words):
    """Runs git there; gives what it said."""
    return subprocess.run(["git", *words], cwd=folder, env=environment(), check=True, capture_output=True, text=True).stdout


def begin(folder, tag):
    """Makes a repository of all that lies in the folder, with one commit of that name."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--message", tag)
    git(folder, "tag", tag)


def published(place, name, version):
    """The folder of a published crate; cargo downloads it. `place` is an empty folder, or one of an earlier call."""
    (place / "src").mkdir(parents=True, exist_ok=True)
    (place / "src" / "lib.rs").touch()
    (place / "Cargo.toml").write_text(f'[package]\nname = "fetching"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n[dependencies]\n'
                                      f'{name} = "={version}"\n')
    done = subprocess.run(["cargo", "fetch", "--quiet"], cwd=place, text=True, capture_output=True)
    folder = in_registry(f"{name}-{version}")
    if done.returncode or not folder:
        sys.exit(f"error: {name} {version} is not in the registry:\n{done.stderr}")
    return folder


def in_registry(name):
    """Where cargo keeps the files of a crate that it downloaded, named NAME-VERSION; None where it did not."""
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    return next((home / "registry" / "src").glob(f"*/{name}/"), None)


def copy_published(crate, folder):
    """Copies a published crate to a folder where it is a workspace of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(crate, folder)
    for left in (".cargo-ok", ".cargo-checksum.json", "Cargo.lock"):
        (folder / left).unlink(missing_ok=True)
    (folder / ".gitignore").write_text("/target\n")
    manifest = folder / "Cargo.toml"
    if "[workspace]" not in manifest.read_text():
        manifest.write_text(f"{manifest.read_text()}\n[workspace]\n")


def took(receipt):
    """How long a gate took, in seconds: its builds, and all the rest."""
    seconds = {step.removesuffix("_ns"): round(ns / 1e9) for step, ns in receipt["took"].items()}
    return {"builds_s": seconds.pop("builds"), "seconds": sum(seconds.values())}


# A function that no benchmark calls.
RARE = """    #[allow(dead_code, unreachable_pub)]
    #[cold]
    #[inline(never)]
    pub fn rare(what: usize) {
        let _ = core::hint::black_box(what);
    }
"""
# No reference is to one of the pages at the bottom of memory, which the compiler does not know.
NEVER = "core::ptr::from_ref(&*{argument}).cast::<u8>() as usize"


def equivalents(draw, argument, rare):
    """Statements that do nothing, by name. `argument` is a reference, and `rare` the path of that function."""
    place, page = NEVER.format(argument=argument), 4096 * draw.randint(1, 15)
    arms = " ".join(f"{4096 * at} => {rare}({at})," for at in range(1, draw.randint(2, 7)))
    return {
        "a branch": f"if {place} == {page} {{ {rare}({draw.randint(1, 999)}); }}",
        "match arms": f"match {place} {{ {arms} _ => () }}",
        "a spill": f"if {place} == {page} {{ let mut wide = [{draw.randint(1, 255)}_u8; {draw.randint(100, 2000)}]; let _ = core::hint::black_box(&mut wide); }}",
        "a panic": f'if {place} == {page} {{ panic!("{{}} is no place of {{}} bytes", {place}, core::mem::size_of_val(&*{argument})); }}',
    }
