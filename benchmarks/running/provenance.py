"""The version and the commit of the code that runs; imports no torch."""

import json
import re
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CHANGES = "+changes"  # behind a commit from which files differ
NO_TAG = "0"  # the version before the first release


class Provenance(NamedTuple):
    """A version and a commit from one source, so that they never name different code."""

    version: str | None
    commit: str | None


@cache
def provenance() -> Provenance:
    """Return the version and the commit of this code.

    A run asks before it trains anything: a checkout may move on while its code runs.
    """
    return of_folder(ROOT)


def of_folder(root: Path) -> Provenance:
    """Return those of git for a checkout, else those of the installed package.

    The metadata of an editable install stay behind when its checkout moves on.
    """
    return of_checkout(root) if (root / ".git").exists() else of_installation()


def of_checkout(root: Path) -> Provenance:
    """Return the version by the last tag and the commit; (None, None) if git cannot tell.

    The version of a release is its tag. Behind a tag, or with changes, it names the commit too,
    such as 0.1.0+g90f897c0d.changes.
    """

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode().strip()

    try:
        commit = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ":!results")
        tags = git("tag", "--merged", "HEAD", "--sort=-version:refname", "--list", "v[0-9]*")
        tag = tags.partition("\n")[0]
        released = tag and git("rev-parse", f"{tag}^{{commit}}") == commit and not changed
    except (OSError, subprocess.CalledProcessError):
        return Provenance(None, None)
    version = tag.removeprefix("v") or NO_TAG
    if not released:
        version += f"+g{commit[:9]}" + ".changes" * bool(changed)
    return Provenance(version, commit + CHANGES * bool(changed))


def of_installation() -> Provenance:
    """Return the version and the commit of an installed package.

    The commit is the one that pip took it from (PEP 610), or the version ends in +gCOMMIT, and in
    the day of the build where files differed from that.
    """
    try:
        package = distribution("contrastbench")
    except PackageNotFoundError:
        return Provenance(None, None)
    source = json.loads(package.read_text("direct_url.json") or "{}")
    if commit := source.get("vcs_info", {}).get("commit_id"):
        return Provenance(package.version, str(commit))
    match = re.search(r"\+g([0-9a-f]+)(\.d[0-9]+)?$", package.version)
    return Provenance(package.version, match[1] + CHANGES * bool(match[2]) if match else None)
