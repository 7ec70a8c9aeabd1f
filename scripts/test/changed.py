#!/usr/bin/env python3
"""Prints which tests a change can affect, for scripts/test/test.sh --check.

usage: scripts/test/changed.py TREE

TREE is the git tree of the last check that passed; without such a tree, everything has changed. It
prints four lines: the git tree of the working files, a filter for nextest, the other parts of the
check that must run (`web`, `gstreamer`, `python`), and the changed packages as options of
cargo.

A check is for a change of a few lines: what uses a changed package is tested with it, but long tests
and workspaces of their own only where their own files changed. `make test` leaves out none of them.
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
    "scripts/test/test.sh",
    "scripts/test/changed.py",
)
# A part runs if a file below one of its folders has changed. Each is a workspace of its own.
PARTS = {
    "web": ("lab/web/", "ims/agent/"),
    "gstreamer": ("library/gst/",),
    "python": ("lab/python/", "examples/python/", "scripts/test/test-python.sh"),
}
# Modules of tests that take seconds. Each runs if a file below one of its folders has changed.
LONG = {
    "weir-analyze::dumps": ("lab/analyze/",),
    "weir-analyze::memory": ("lab/analyze/",),
    "weir-analyze::odd_files": ("lab/analyze/",),
    "weir-call::server": ("lab/call/",),
    "weir-capi::allocations": ("library/capi/",),
    "weir-capi::c_programs": ("library/capi/",),
    "weir-capi::properties": ("library/capi/",),
    "weir-cli::bounds": ("lab/cli/", "lab/scenario/", "lab/record/", "lab/sim/"),
    "weir-cli::collect": ("lab/cli/", "lab/analyze/"),
    "weir-net::cellular_properties": ("lab/net/",),
    "weir-net::memory": ("lab/net/",),
    "weir-net::wifi": ("lab/net/",),
    "weir-net::wifi_properties": ("lab/net/",),
}
# Their tests read the pages, the scripts and the text of every part.
READERS = ("weir-cli", "weir-tidy")


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


def changed_packages(files):
    """The names of the packages that have a changed file."""
    found = set()
    for folder, name in packages().items():
        if any(file.startswith(folder) for file in files):
            found.add(name)
    return sorted(found)


def below(files, folders):
    return any(file.startswith(folders) for file in files)


def selected(names, files):
    """The filter of nextest for the packages that use a changed one, without long tests."""
    users = " | ".join(f"rdeps(={name})" for name in sorted({*READERS, *names}))
    left_out = [name for name, folders in LONG.items() if not below(files, folders)]
    return f"({users}) - ({' | '.join(map(module, left_out))})"


def module(name):
    """The filter of nextest for a module of a crate's test program."""
    package, tests = name.split("::")
    return f"(binary_id(={package}::it) & test(/^{tests}::/))"


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
        print("--workspace")
        return
    names = changed_packages(files)
    print(selected(names, files))
    print(*(part for part, folders in PARTS.items() if below(files, folders)))
    print(*(f"--package {name}" for name in names))


main()
