#!/usr/bin/env python3
"""What `weir analyze` says of each file of a folder, beside an earlier program: a Markdown table.

    field-verdicts.py FOLDER WEIR [BEFORE]

The truth is in the names of the files; of captures, there is also what tshark counts as lost.
Needs tshark.
"""

import subprocess
import sys
from pathlib import Path


def verdict(program, file):
    """The first line that the program prints about a file."""
    command = [program, "analyze", file.name]
    run = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    lines = (run.stdout or run.stderr).splitlines() or [f"exit code {run.returncode}"]
    return lines[0].removeprefix("weir: ").removeprefix(f"{file.name}: ").replace("|", "/")


def lost(file):
    """Lost packets of the streams that tshark finds in a capture."""
    if not {".pcap", ".pcapng", ".cap"} & set(file.suffixes):
        return "-"
    command = ["tshark", "-r", file, "-q", "-z", "rtp,streams", "--enable-heuristic", "rtp_udp"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    shares = [line.split("(")[1].split(")")[0] for line in printed.splitlines() if " 0x" in line]
    return ", ".join(shares) or "no stream"


folder, *programs = sys.argv[1:]
print(f"| input and truth | lost, by tshark | {' | '.join(['now', 'before'][: len(programs)])} |")
print("|---" * (2 + len(programs)) + "|")
for path in sorted(it for it in Path(folder).iterdir() if it.is_file()):
    print(f"| `{path.name}` | {lost(path)} | {' | '.join(verdict(it, path) for it in programs)} |")
