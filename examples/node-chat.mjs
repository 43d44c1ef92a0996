// SPDX-License-Identifier: MIT
// A conversation in the terminal:  node examples/node-chat.mjs [model.gguf or its URL]
// An empty line or Ctrl+D ends it.
import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';
import { QuernError, load } from 'quern';

const demo = fileURLToPath(new URL('../web/models/demo-q8_0.gguf', import.meta.url));

async function converse(model, lines) {
  const messages = [];
  for await (const content of lines) {
    if (!content.trim()) break;
    messages.push({ role: 'user', content });
    const reply = model.chat(messages, { thinking: false });
    for await (const text of reply) process.stdout.write(text);
    const { text, usage, timings } = await reply.result;
    messages.push({ role: 'assistant', content: text });
    process.stdout.write(
      `\n[${usage.cachedTokens} of ${usage.promptTokens} tokens known, ${timings.tokensPerSecond.toFixed(0)} tokens/s]\n`,
    );
    lines.prompt();
  }
}

try {
  const model = await load(process.argv[2] ?? demo);
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: '> ' });
  lines.prompt();
  await converse(model, lines);
  lines.close();
  await model.dispose();
} catch (error) {
  if (!(error instanceof QuernError)) throw error;
  process.stderr.write(`${error.message} ${error.hint}\n`);
  process.exitCode = 1;
}
