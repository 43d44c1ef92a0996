#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# anthropic 2.14.0 (PyPI) and @anthropic-ai/sdk 1.14.0 (npm): messages.create() has no temperature, top_p and top_k any
# more.
#
# In Python, a program written after older examples fails with a TypeError before it sends anything; extra_body still
# sends these fields to a server that takes them. In JavaScript only the types lack them: given fields are still sent.
#
# Expected output: which fields each version has, and what JavaScript sends.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/python"
"$dir/python/bin/pip" install --quiet --disable-pip-version-check anthropic==2.14.0
npm install --silent --no-save --ignore-scripts --prefix "$dir" @anthropic-ai/sdk@1.14.0
cat > "$dir/main.py" <<'PY'
import inspect

from anthropic.resources.messages import Messages

names = inspect.signature(Messages.create).parameters
print("Python:", *[f"{name} {name in names}," for name in ("temperature", "top_p", "top_k", "stop_sequences", "extra_body")])
PY
cat > "$dir/main.mjs" <<'JS'
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import Anthropic from '@anthropic-ai/sdk';
const types = readFileSync(new URL('node_modules/@anthropic-ai/sdk/resources/messages/messages.d.ts', import.meta.url), 'utf8');
const [params] = /^export interface MessageCreateParamsBase [^]*?^}/m.exec(types);
console.log('JavaScript:', ...['temperature', 'top_p', 'top_k', 'stop_sequences'].map((name) => `${name} ${new RegExp(`^    ${name}\\?:`, 'm').test(params)},`));
const server = createServer(async (request, response) => {
  const body = JSON.parse(Buffer.concat(await request.toArray()));
  console.log('sent:', Object.keys(body).join());
  response.setHeader('Content-Type', 'application/json').end('{"type":"message","content":[]}');
});
await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
const client = new Anthropic({ baseURL: `http://127.0.0.1:${server.address().port}`, apiKey: 'none' });
await client.messages.create({ model: 'any', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }], temperature: 0 });
server.closeAllConnections();
server.close();
JS
"$dir/python/bin/python3" "$dir/main.py" > "$dir/seen"
node "$dir/main.mjs" >> "$dir/seen"
cat "$dir/seen"
diff - "$dir/seen" <<'SEEN'
Python: temperature False, top_p False, top_k False, stop_sequences True, extra_body True,
JavaScript: temperature false, top_p false, top_k false, stop_sequences true,
sent: model,max_tokens,messages,temperature
SEEN
