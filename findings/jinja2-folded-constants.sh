#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# jinja2 3.1.6 evaluates constant expressions while it compiles a template, with visible effects.
#
# - An unknown filter is a compile error, but not after a constant that decides "or", "and" or "if": the compiler folds
#   the expression before it looks up the filter. So it depends on literal values whether a template compiles.
# - {{ 1e400 }} prints "inf", because the folded result is printed as text. {% set x = 1e400 %}{{ x }} fails at run
#   time: the generated Python program contains repr(1e400), which is the undefined name inf.
#
# Expected output: the first three templates give 1, 0 and 1, and the fourth does not compile. The fifth gives inf, and
# the last two fail with "name 'inf' is not defined".
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
