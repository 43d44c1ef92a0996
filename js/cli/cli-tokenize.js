// SPDX-License-Identifier: MIT
// `quern tokenize` needs no weights, so it asks an engine that has only read the model's headers, in this thread. Texts
// of any length pass in parts (token-stream.js).

import { around } from '../engine/around.js';
import { input, out } from './cli-terminal.js';
import { openHeaders } from './inspect.js';
import { TokenStream } from './token-stream.js';

/** Prints ids: all in one line, or each with its text in a line of its own. */
function printer(engine, inLine) {
  const lines = [];       // id -> line
  let between = '';
  const withText = (id) => { lines[id] ??= `${id}\t${JSON.stringify(engine.detokenize([id]))}\n`; return lines[id]; };
  return {
    async print(ids) {
      if (ids.length === 0) return;
      await out(inLine ? between + ids.join(' ') : Array.from(ids, withText).join(''));
      between = ' ';
    },
    async end() {
      if (inLine) await out('\n');
      between = '';
    },
  };
}

export async function tokenize({ model, values: { ids, nul }, load }) {
  const engine = await openHeaders(model, load);
  const stream = new TokenStream(engine);
  const { print, end } = printer(engine, ids || nul);
  const { before, after } = engine.facts.added;
  let first = before;
  const show = async (some) => {
    await print(around(some, { before: first }));
    first = [];
  };
  const endText = async () => {
    await show(around(stream.end(), { after }));
    await end();
    first = before;
  };
  for await (const chunk of input()) {
    let rest = chunk;
    for (let at = rest.indexOf(0); nul && at >= 0; at = rest.indexOf(0)) {
      await show(stream.push(rest.subarray(0, at)));
      await endText();
      rest = rest.subarray(at + 1);
    }
    await show(stream.push(rest));
  }
  await endText();
}
