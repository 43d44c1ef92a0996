#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# jinja2 3.1.6 computes constant expressions while it compiles a template, and that is visible.
#
# - An unknown filter is an error of compilation. Behind a constant that decides "or", "and" or "if" it is none: the compiler folds
#   the expression before it looks for the filter. Whether a template compiles thus depends on whether a value is written out.
# - {{ 1e400 }} prints "inf", since the result of folding is printed as text. {% set x = 1e400 %}{{ x }} fails while it runs: the
#   generated Python program has repr(1e400) as its source text, which is the bare name inf.
#
# Output seen: the first three templates give 1, 0 and 1, the fourth does not compile. The fifth gives inf, the last two fail with
# "name 'inf' is not defined".
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check jinja2==3.1.6
"$dir/venv/bin/python" - > "$dir/seen" <<'PY'
from jinja2 import Environment
for text in ("{{ 1 or 2|nosuch }}", "{{ 0 and 2|nosuch }}", "{{ 1 if true else 2|nosuch }}", "{{ one or 2|nosuch }}",
             "{{ 1e400 }}", "{% set x = 1e400 %}{{ x }}", "{{ one + 1e400 }}"):
    step = "compiling"
    try:
        template = Environment().from_string(text)
        step = "running"
        print(text, "->", template.render(one=1))
    except Exception as error:
        print(text, "->", step, "raises", type(error).__name__ + ":", error)
PY
cat "$dir/seen"
diff - "$dir/seen" <<'SEEN'
{{ 1 or 2|nosuch }} -> 1
{{ 0 and 2|nosuch }} -> 0
{{ 1 if true else 2|nosuch }} -> 1
{{ one or 2|nosuch }} -> compiling raises TemplateAssertionError: No filter named 'nosuch'.
{{ 1e400 }} -> inf
{% set x = 1e400 %}{{ x }} -> running raises NameError: name 'inf' is not defined
{{ one + 1e400 }} -> running raises NameError: name 'inf' is not defined
SEEN
