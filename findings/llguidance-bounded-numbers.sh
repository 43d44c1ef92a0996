#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# llguidance 1.9.1 accepts exponents in numbers only as long as the JSON schema sets no bound.
#
# {"type": "number"} accepts 1e3. With "maximum": 1e9 or "minimum": 0 it does not, though 1e3 is within the bounds. Not
# even the bound itself, written 1e9 as in the schema, is accepted. "multipleOf": 0.1 has the same effect; there 1.0 is
# accepted, but 0.30 is not. With a bound, a model that would write a small number as 1e-7 must write all the zeros.
#
# Expected output: which of the numbers each schema accepts. All of them are valid by JSON Schema.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check llguidance==1.9.1
"$dir/venv/bin/python" - > "$dir/seen" <<'PY'
import json
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

class Bytes:
    tokens, eos_token_id, bos_token_id, special_token_ids = [bytes([i]) for i in range(256)] + [b"<end>"], 256, None, [256]
    def __call__(self, text):
        return list(text if isinstance(text, bytes) else text.encode())

tokenizer = LLTokenizer(TokenizerWrapper(Bytes()))

def accepts(schema, text):
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(schema))
    return matcher.try_consume_tokens(list(text.encode())) == len(text) and matcher.is_accepting()

for bound, texts in ((None, "1e3 1e9 1000.0 1e-7"), ('"maximum": 1e9', "1e3 1e9 1000.0 1000000000"),
                     ('"minimum": 0', "1e3 1e-7 0.0000001"), ('"multipleOf": 0.1', "1e0 1.0 0.3 0.30")):
    schema = json.loads('{"type": "number"' + (", " + bound if bound else "") + "}")
    print(bound or "no bound", *(text + (" yes" if accepts(schema, text) else " no") for text in texts.split()), sep="  ")
PY
cat "$dir/seen"
diff - "$dir/seen" <<'SEEN'
no bound  1e3 yes  1e9 yes  1000.0 yes  1e-7 yes
"maximum": 1e9  1e3 no  1e9 no  1000.0 yes  1000000000 yes
"minimum": 0  1e3 no  1e-7 no  0.0000001 yes
"multipleOf": 0.1  1e0 no  1.0 yes  0.3 yes  0.30 no
SEEN
