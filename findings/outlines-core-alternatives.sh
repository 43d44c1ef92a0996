#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# outlines-core 0.2.14 makes a grammar that no JSON satisfies from a schema whose "pattern" is an alternative.
#
# It turns the schema {"type": "string", "pattern": "yes|no"} into the regular expression ("yes|no"): it puts the quotes
# around the pattern without a group, so the bar separates "yes from no". A model with this constraint can write exactly
# two texts, and both lack a quote. ^yes|no$, and patterns inside objects, have the same problem. Writing the group
# yourself, (yes|no), helps.
#
# Expected output: for each pattern the regular expression, and whether it matches "yes", "no", "yes without its second
# quote, and no" without its first. Then all texts that the library's index of yes|no allows, with one letter per token.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check outlines-core==0.2.14
"$dir/venv/bin/python" - > "$dir/seen" <<'PY'
import json, re
from outlines_core import Index, Vocabulary, json_schema

def expression(**schema):
    return json_schema.build_regex_from_schema(json.dumps(schema))

for pattern in ("yes|no", "^yes|no$", "(yes|no)"):
    made = expression(type="string", pattern=pattern)
    print(pattern, "->", made, [bool(re.fullmatch(made, text)) for text in ('"yes"', '"no"', '"yes', 'no"')])

letters = '"yesno'
index = Index(expression(type="string", pattern="yes|no"), Vocabulary(9, {letter: [i] for i, letter in enumerate(letters)}))
found, todo = [], [(index.get_initial_state(), "")]
while todo:
    state, text = todo.pop()
    if index.is_final_state(state):
        found.append(text)
    todo += [(after, text + letters[token]) for token, after in index.get_transitions()[state].items() if token != 9]
print("all texts:", sorted(found))
PY
cat "$dir/seen"
diff - "$dir/seen" <<'SEEN'
yes|no -> ("yes|no") [False, False, True, True]
^yes|no$ -> ("yes|no") [False, False, True, True]
(yes|no) -> ("(yes|no)") [True, True, False, False]
all texts: ['"yes', 'no"']
SEEN
