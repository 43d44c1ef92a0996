# SPDX-License-Identifier: MIT
# The side of tests/bench/maskbench.mjs that needs Python: llguidance and tiktoken.
#
#   python3 maskbench.py prepare DATA RANKS COUNT   a line of JSON for each of COUNT schemas: id, schema, tests' tokens
#   python3 maskbench.py measure RANKS CASES        a line of JSON for each that llguidance compiles: microseconds
import base64
import importlib.metadata
import json
import os
import random
import sys
import time

import tiktoken

SPECIAL = 26
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# What constrains; the rest, and formats that only one of the two knows, is taken out so that both see the same.
WORDS = set(
    "type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern format prefixItems items "
    "additionalItems contains minContains maxContains maxItems minItems properties patternProperties additionalProperties propertyNames "
    "maxProperties minProperties required dependentRequired dependentSchemas dependencies allOf anyOf oneOf not if then else $ref $anchor $defs "
    "definitions".split()
)
FORMATS = {"date", "time", "date-time", "uuid", "email", "hostname", "ipv4", "ipv6", "uri"}
MAPS = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}


def plain(schema):
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for word, value in schema.items():
        if word not in WORDS or (word == "format" and (value not in FORMATS or "pattern" in schema)):
            continue
        if word in MAPS and isinstance(value, dict):
            value = {name: plain(one) for name, one in value.items()}
        elif word not in ("enum", "const", "required"):
            value = plain(value)
        out[word] = value
    for bound in ("Minimum", "Maximum"):
        if isinstance(out.get("exclusive" + bound), bool):
            if out.pop("exclusive" + bound) and bound.lower() in out:
                out["exclusive" + bound] = out.pop(bound.lower())
    return out


def encoding(path):
    with open(path) as file:
        ranks = {base64.b64decode(line.split()[0]): i for i, line in enumerate(file)}
    special = {f"<|{i}|>": len(ranks) + i for i in range(SPECIAL)}
    return tiktoken.Encoding("qwen", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special), len(ranks)


def prepare(data, ranks, count):
    tokens, _ = encoding(ranks)
    names = sorted(name for name in os.listdir(data) if name.endswith(".json"))
    for name in random.Random(1).sample(names, min(int(count), len(names))):
        with open(os.path.join(data, name)) as file:
            one = json.load(file)
        texts = [json.dumps(test["data"], indent=None, ensure_ascii=False) for test in one["tests"]]
        tests = [tokens.encode(text, disallowed_special=()) for text in texts]
        print(json.dumps({"id": name, "schema": json.dumps(plain(one["schema"])), "tests": tests}))


def measure(ranks, cases):
    import llguidance
    from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask
    from llguidance.tiktoken import lltokenizer_from_encoding

    tokens, n = encoding(ranks)
    tokenizer = lltokenizer_from_encoding(tokens, n_vocab=n + SPECIAL, eos_token=n + 2)
    mask = allocate_token_bitmask(1, tokenizer.vocab_size)
    print(json.dumps({"version": importlib.metadata.version("llguidance")}))
    with open(cases) as file:
        for line in file:
            one = json.loads(line)
            grammar = json.dumps({"grammars": [{"json_schema": json.loads(one["schema"])}]})
            began = time.perf_counter_ns()
            start = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
            compiled = (time.perf_counter_ns() - began) / 1000
            if start.is_error():
                continue
            tests = []
            for test in one["tests"]:
                matcher, steps = start.deep_copy(), []
                for token in test:
                    began = time.perf_counter_ns()
                    fill_next_token_bitmask(matcher, mask, 0)
                    steps.append((time.perf_counter_ns() - began) / 1000)
                    if not mask[0, token // 32] >> (token % 32) & 1:
                        break
                    matcher.consume_token(token)
                tests.append(steps)
            print(json.dumps({"id": one["id"], "compile": compiled, "tests": tests}))


{"prepare": prepare, "measure": measure}[sys.argv[1]](*sys.argv[2:])
