#!/usr/bin/env python3
"""Prints which tests a change can affect, for scripts/test.sh --check.

usage: scripts/changed.py TREE

TREE is the git tree of the last check that passed; without such a tree, everything has changed. It
prints three lines: the git tree of the working files, a filter for nextest, and the other parts of
the check that must run (`web`, `gstreamer`, `python`, `python-build`, `documentation`, `memory`).
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Files that change the build or the tests of every part.
EVERYWHERE = (
    "Cargo.toml",
    "Cargo.lock",
    ".cargo/",
    ".config/",
    "scripts/test.sh",
    "scripts/changed.py",
)
# A part runs if a file below one of its folders has changed.
PARTS = {
    "web": ("lab/web/", "ims/agent/"),
    "gstreamer": ("library/gst/", "library/weir/", "library/wire/", "library/rtcp/"),
    "python": ("lab/python/", "examples/python/", "scripts/test-python.sh"),
    "python-build": ("library/", "lab/net/", "lab/sim/", "lab/lab/"),
    "documentation": ("library/", "lab/"),
    "memory": ("library/weir/", "examples/fixed-memory/"),
}
# Its tests read the pages, the scripts and the text of every part.
READER = "weir-cli"


def git(*arguments, **environment):
    result = subprocess.run(
        ["git", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    return result.stdout.strip() if result.returncode == 0 else None


def working_tree():
    """The working files as a tree of git, with new ones, without a change of the index."""
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        git("read-tree", "HEAD", **index)
        git("add", "--all", **index)
        return git("write-tree", **index)


def packages():
    """The folder of each package of the workspace, and its name."""
    text = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = json.loads(text)
    root = Path(found["workspace_root"])
    return {
        f"{Path(package['manifest_path']).parent.relative_to(root)}/": package["name"]
        for package in found["packages"]
    }


def affected(files):
    """The filter of nextest for the packages that use a changed file."""
    names = {READER}
    folders = packages()
    for file in files:
        names.update(name for folder, name in folders.items() if file.startswith(folder))
    return " | ".join(f"rdeps(={name})" for name in sorted(names))


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("--help", "-h"):
        print(__doc__.strip())
        sys.exit(0 if sys.argv[1:] in (["--help"], ["-h"]) else 2)
    tree = working_tree()
    changed = git("diff", "--name-only", sys.argv[1], tree) if tree and sys.argv[1] else None
    files = None if changed is None else changed.splitlines()
    print(tree or "")
    if files is None or any(file.startswith(EVERYWHERE) for file in files):
        print("all()")
        print(*PARTS)
        return
    print(affected(files))
    print(
        *(
            part
            for part, folders in PARTS.items()
            if any(file.startswith(folders) for file in files)
        )
    )


main()
