#!/usr/bin/env python3
"""Prints the tests of a revision, a line each: which language, and the test's name. To see what a change has lost:

usage: scripts/test/list-tests.py [--missing] REVISION [REVISION]

With --missing it prints those of the first revision whose name the second one has not; nothing if none is lost.
Names of two tests may be equal: each line has its count in front.
"""

import collections
import re
import subprocess
import sys

PATTERNS = {
    ".rs": re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)"),
    ".ts": re.compile(r"^\s*(?:test|it)\(\s*[\"'`](.+?)[\"'`]", re.MULTILINE),
    ".mjs": re.compile(r"^\s*(?:test|it)\(\s*[\"'`](.+?)[\"'`]", re.MULTILINE),
    ".py": re.compile(r"^\s*def (test_\w+)", re.MULTILINE),
    ".go": re.compile(r"^func ((?:Test|Fuzz)\w+)", re.MULTILINE),
}


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, check=True).stdout


def tests(revision):
    """How often a revision has each test, by language and name."""
    found = collections.Counter()
    names = git("ls-tree", "-r", "--name-only", "-z", revision).decode().split("\0")
    for name in names:
        ending = name[name.rfind(".") :] if "." in name else ""
        if name.startswith("fuzz/fuzz_targets/"):
            found[("fuzz", name)] += 1
        elif ending in PATTERNS:
            text = git("show", f"{revision}:{name}").decode(errors="replace")
            found.update((ending, test) for test in PATTERNS[ending].findall(text))
    return found


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--missing"]
    is_missing = "--missing" in sys.argv
    if len(arguments) != (2 if is_missing else 1) or arguments[0] in ("--help", "-h"):
        print(__doc__.strip())
        sys.exit(0 if arguments in (["--help"], ["-h"]) else 2)
    found = tests(arguments[0])
    if is_missing:
        found -= tests(arguments[1])
    for (language, test), count in sorted(found.items()):
        print(f"{count} {language} {test}")


main()
