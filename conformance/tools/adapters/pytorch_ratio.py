#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytorch_ratio.py - puts the rounds of pytorch_step together.

usage: pytorch_ratio.py FOLDER ROUNDS [JSON]
FOLDER has ours.I.json and theirs.I.json of each round.
"""

import json
import statistics
import sys

from pytorch_step import row


def read(folder, who, i):
    with open(f"{folder}/{who}.{i}.json", encoding="utf-8") as f:
        return json.load(f)


def result(document, memory):
    for r in document["results"]:
        if r["name"].endswith(".memory") == memory:
            return r
    raise SystemExit("a result is missing")


def main():
    folder, rounds = sys.argv[1], int(sys.argv[2])
    path = sys.argv[3] if len(sys.argv) > 3 else ""
    ours = [read(folder, "ours", i) for i in range(rounds)]
    theirs = [read(folder, "theirs", i) for i in range(rounds)]
    rows = []
    for memory in (False, True):
        pairs = [
            (result(a, memory), result(b, memory)) for a, b in zip(ours, theirs)
        ]
        for side in (0, 1):
            first = pairs[0][side]
            samples = [x for pair in pairs for x in pair[side]["samples"]]
            rows.append(
                row(first["name"], first["unit"], first["better"], samples)
            )
        ratios = [a["median"] / b["median"] for a, b in pairs]
        rows.append(
            row(
                pairs[0][0]["name"] + ".of-pytorch",
                "ratio",
                "lower" if memory else "higher",
                ratios,
            )
        )
    for r in rows:
        print(
            f"{r['name']:<52} {r['median']:10.3f} {r['unit']:<8}"
            f"  p10 {r['p10']:.3f}  p90 {r['p90']:.3f}"
        )
    if path:
        document = dict(ours[0], results=rows)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f, indent=1)


if __name__ == "__main__":
    main()
