#!/usr/bin/env python3
"""Rewards answers for `rewards=exec:examples/rewards/judge.py` (docs/rewards.md): 1 for the record's answer somewhere in the last line,
less 0.1 for every line before it; nothing where the record has no answer."""

import json
import sys

for line in sys.stdin:
    asked = json.loads(line)
    answer = asked["record"].get("answer")
    lines = asked["completion"].strip().split("\n")
    reward = None if answer is None else (str(answer) in lines[-1]) - 0.1 * (len(lines) - 1)
    print(json.dumps(reward), flush=True)
