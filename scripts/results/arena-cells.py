#!/usr/bin/env python3
"""A row for each stack and a column for each scenario, of the table that `weir arena --runs N --markdown` prints.

    arena-cells.py TABLE

A cell has the utilization with its 95 % interval, the p95 of the queue in ms, the pictures a second, the seconds frozen, and
how many expectations hold. Values without an interval are means.
"""

import sys


def mean(cell):
    """The mean of "86 ±41"."""
    return cell.split(" ")[0]


def held(expectations):
    """ "2 of 2" of "green, 2 of 2 hold"."""
    return expectations.split(", ")[1].removesuffix(" hold")


def main():
    stacks = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) != 11 or not cells[2].isdigit():
                continue
            stack, scenario, _, used, queue, _, _, _, pictures, frozen, expectations = cells
            values = [used, mean(queue), mean(pictures), mean(frozen), held(expectations)]
            stacks.setdefault(stack, {})[scenario] = "; ".join(values)
    scenarios = list(next(iter(stacks.values())))
    print("| stack |", " | ".join(scenarios), "|")
    print("|---" * (len(scenarios) + 1) + "|")
    for stack, by_scenario in stacks.items():
        print(f"| {stack} |", " | ".join(by_scenario.values()), "|")


if __name__ == "__main__":
    main()
