# SPDX-License-Identifier: MIT
# What the Python programs of this folder ask, each with its client, and how they say what came of it.
import json
import pathlib
import sys

FACTS = json.loads((pathlib.Path(__file__).parent / "facts.json").read_text())
BASE = sys.argv[1]
QUESTION, WEATHER = FACTS["question"], FACTS["weather"]
TOOL = {"type": "function", "function": WEATHER}
CITY = WEATHER["parameters"]


def tell(**outcome):
    print(json.dumps(outcome))
