#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# @huggingface/jinja 0.5.11 and jinja2 3.1.6 make different prompts from the same chat template.
#
# - strip(), lstrip() and rstrip() of @huggingface/jinja ignore their argument. Chat templates of Qwen3 call strip('\n')
#   to remove only line ends; in JavaScript this also removes the indentation of the first line, which changes Python
#   code and YAML.
# - {% break %} and {% continue %} drop the text that their iteration of the loop has already written.
# - {{ true }} is written as "true", where Python writes "True".
# - A variable that is set in a loop keeps its value in the next iteration.
#
# jinja2 runs here as transformers configures it: a sandbox, trim_blocks, lstrip_blocks, loop controls.
# Expected output: each template, then jinja2's result, then @huggingface/jinja's result. All six pairs differ.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check jinja2==3.1.6
npm install --silent --no-save --prefix "$dir" @huggingface/jinja@0.5.11
cat > "$dir/templates.json" <<'JSON'
["{{ '\\n    return 1\\n'.strip('\\n') }}", "{{ '  deep'.lstrip('\\n') }}", "{% for i in [1, 2] %}a{{ i }}{% break %}{% endfor %}",
 "{% for i in [1, 2] %}a{{ i }}{% continue %}{% endfor %}", "{{ true }}", "{% for i in [1, 2] %}{{ x is defined }} {% set x = i %}{% endfor %}"]
JSON
cat > "$dir/render.mjs" <<'JS'
import { readFileSync } from 'node:fs';
import { Template } from '@huggingface/jinja';
const templates = JSON.parse(readFileSync(new URL('templates.json', import.meta.url)));
console.log(JSON.stringify(templates.map((text) => new Template(text).render({}))));
JS
node "$dir/render.mjs" > "$dir/javascript.json"
"$dir/venv/bin/python" - "$dir" > "$dir/seen" <<'PY'
import json, sys
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
templates, others = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("templates", "javascript"))
environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
for text, other in zip(templates, others):
    print(text, repr(environment.from_string(text).render()), repr(other), sep="  ->  ")
PY
cat "$dir/seen"
diff - "$dir/seen" <<'SEEN'
{{ '\n    return 1\n'.strip('\n') }}  ->  '    return 1'  ->  'return 1'
{{ '  deep'.lstrip('\n') }}  ->  '  deep'  ->  'deep'
{% for i in [1, 2] %}a{{ i }}{% break %}{% endfor %}  ->  'a1'  ->  ''
{% for i in [1, 2] %}a{{ i }}{% continue %}{% endfor %}  ->  'a1a2'  ->  ''
{{ true }}  ->  'True'  ->  'true'
{% for i in [1, 2] %}{{ x is defined }} {% set x = i %}{% endfor %}  ->  'False False '  ->  'false true '
SEEN
