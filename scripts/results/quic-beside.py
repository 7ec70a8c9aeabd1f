#!/usr/bin/env python3
"""Simulated QUIC connections beside the real stacks: joins what the examples print.

    quic-beside.py SIMULATED NOQ QUINN
    quic-beside.py NOQ

Each file is the table of an example: quic_cases of lab/sim, compare of library/noq, compare of library/quinn. Prints a Markdown
table with utilization and p95 of the queue of both where they differ. With one file, prints that table with a row for each case.
"""

import sys

# The rows of the simulated table, and those of the real stacks that they model.
PAIRS = [
    ("sluice as on noq", "noq", "sluice"),
    ("scream-v2 as on noq", "noq", "scream-v2"),
    ("sluice as on quinn", "quinn", "sluice"),
    ("scream-v2 as on quinn", "quinn", "scream-v2"),
    ("CUBIC", "noq", "noq's CUBIC"),
    ("CUBIC", "quinn", "quinn's CUBIC"),
    ("NewReno", "noq", "noq's NewReno"),
    ("NewReno", "quinn", "quinn's NewReno"),
    ("BBRv3", "noq", "noq's BBRv3"),
]
# What counts as equal: a part of the link, and ms of the queue.
UTILIZATION = 0.05
QUEUE_MS = 20


def table(path):
    """The cells of each row of results."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 8 and cells[2].startswith(("0.", "1.")):
                yield cells


def rows(path):
    """Utilization and p95 of the queue, by case and controller."""
    return {
        (cells[0], cells[1]): (float(cells[2]), int(cells[4].split("/")[1]))
        for cells in table(path)
    }


def print_cases(path):
    """A row for each case: utilization, p95 of queue and frame delay in ms, share of the frames that are whole."""
    cases = {}
    for case, controller, utilization, _, queue, delay, whole, _ in table(path):
        p95s = [both.split("/")[1].strip() for both in (queue, delay)]
        cases.setdefault(case, {})[controller] = ", ".join([utilization, *p95s, whole])
    controllers = list(next(iter(cases.values())))
    print("| case |", " | ".join(controllers), "|")
    print("|---" * (len(controllers) + 1) + "|")
    for case, by_controller in cases.items():
        print(f"| {case} |", " | ".join(by_controller.values()), "|")


def main():
    if len(sys.argv) == 2:
        return print_cases(sys.argv[1])
    simulated, noq, quinn = (rows(path) for path in sys.argv[1:4])
    real = {"noq": noq, "quinn": quinn}
    print(
        "| case | controller | utilization: simulated, real | queue p95 ms: simulated, real | differs by |"
    )
    print("|---|---|---|---|---|")
    count = equal = 0
    for case in dict.fromkeys(case for case, _ in simulated):
        for name, stack, of in PAIRS:
            ours, theirs = simulated[case, name], real[stack][case, of]
            differs = []
            if abs(ours[0] - theirs[0]) > UTILIZATION:
                differs.append(f"{ours[0] - theirs[0]:+.2f}")
            if abs(ours[1] - theirs[1]) > QUEUE_MS:
                differs.append(f"{ours[1] - theirs[1]:+d} ms")
            count, equal = count + 1, equal + (not differs)
            if not differs:
                continue
            label = of if "'" in of else f"{of} on {stack}"
            print(
                f"| {case} | {label} | {ours[0]:.3f}, {theirs[0]:.3f} | {ours[1]}, {theirs[1]} | {', '.join(differs)} |"
            )
    print(f"\n{equal} of {count} rows are within {UTILIZATION} of the link and {QUEUE_MS} ms.")
    return None


if __name__ == "__main__":
    main()
