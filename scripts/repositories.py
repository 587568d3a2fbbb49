"""What scripts need of git: an environment without the user's settings, and a folder as a repository of its own."""
import os
import subprocess

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
