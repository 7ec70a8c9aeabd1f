#!/usr/bin/env python3
"""Prints the tests of a revision, a line each: which language, and the test's name. To see what a change has lost:

usage: scripts/test/list-tests.py [--missing] REVISION [REVISION]

With --missing it prints those of the first revision whose name the second one has not, each with the new test whose
text is nearest: the share of words and signs that both have, and its name. A share of 0.9 is a test with a new name;
read the others. Names of two tests may be equal: each line has its count in front.
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


def words(text, start):
    """Words and signs of the lines from a test's name up to the next line that is indented less than the test."""
    lines = text[text.rfind("\n", 0, start) + 1 :].split("\n")
    indent = len(lines[0]) - len(lines[0].lstrip())
    body = [lines[0][lines[0].find("(") :]]
    for line in lines[1:]:
        is_signature = line.lstrip().startswith(")")
        if line.strip() and not is_signature and len(line) - len(line.lstrip()) <= indent:
            break
        body.append(line)
    return collections.Counter(re.findall(r"\w+|[^\w\s]", "\n".join(body)))


def tests(revision):
    """The words of each test of a revision, by language and name."""
    found = collections.defaultdict(list)
    names = git("ls-tree", "-r", "--name-only", "-z", revision).decode().split("\0")
    for name in names:
        ending = name[name.rfind(".") :] if "." in name else ""
        if name.startswith("fuzz/fuzz_targets/"):
            found[("fuzz", name)].append(collections.Counter())
        elif ending in PATTERNS:
            text = git("show", f"{revision}:{name}").decode(errors="replace")
            for match in PATTERNS[ending].finditer(text):
                found[(ending, match[1])].append(words(text, match.start(1)))
    return found


def alike(one, other):
    both = one.total() + other.total()
    return 2 * (one & other).total() / both if both else 0.0


def nearest(language, test, candidates):
    """The share that the nearest text of the candidates has in common, and its name."""
    alikes = [
        (round(alike(test, other), 2), name)
        for (other_language, name), others in candidates.items()
        if other_language == language
        for other in others
    ]
    return max(alikes, default=(0.0, "none"))


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--missing"]
    is_missing = "--missing" in sys.argv
    if len(arguments) != (2 if is_missing else 1) or arguments[0] in ("--help", "-h"):
        print(__doc__.strip())
        sys.exit(0 if arguments in (["--help"], ["-h"]) else 2)
    found = tests(arguments[0])
    after = tests(arguments[1]) if is_missing else {}
    new = {key: texts for key, texts in after.items() if len(texts) > len(found.get(key, []))}
    for (language, name), texts in sorted(found.items()):
        count = len(texts) - len(after.get((language, name), []))
        if count > 0:
            print(count, language, name, *(nearest(language, texts[0], new) if is_missing else ()))


main()
