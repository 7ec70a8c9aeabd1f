#!/usr/bin/env python3
"""Prints a line for each test of a JUnit file: its outcome, its name and why it was skipped or repeated.

usage: scripts/test/outcomes.py JUNIT.xml

The three are separated by tabs. The outcome is passed, failed, skipped, or repeated for a test that
failed first and then passed. A test that prints "skipped: REASON" could not run on this machine;
nextest counts it as passed.
"""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

# libtest may have printed "test NAME ... " at the beginning of the line.
SKIPPED = re.compile(r"^(?:test \S+ \.\.\. )?skipped: (.+)$", re.MULTILINE)


def outcome(case):
    """The outcome of a test and the reason, which is empty if the test passed or failed."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed", ""
    first = case.find("flakyFailure")
    if first is not None:
        return "repeated", " ".join((first.get("message") or "no message").split())
    skipped = SKIPPED.search(case.findtext("system-out") or "")
    return ("skipped", skipped[1].strip()) if skipped else ("passed", "")


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("--help", "-h") or not Path(sys.argv[1]).is_file():
        print(__doc__.strip())
        sys.exit(0 if sys.argv[1:] in (["--help"], ["-h"]) else 2)
    for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
        kind, reason = outcome(case)
        print(kind, f"{case.get('classname')} {case.get('name')}", reason, sep="\t")


main()
