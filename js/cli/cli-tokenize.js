// SPDX-License-Identifier: MIT
// `quern tokenize`: no weights are needed for it, and the engine of a model's headers is asked right here. Texts of any length pass
// in parts (token-stream.js).

import { input, out } from './cli-terminal.js';
import { openHeaders } from './inspect.js';
import { TokenStream } from './token-stream.js';

/** Ids as they are printed: in one line, or each with its text in a line of its own. */
function printer(engine, inLine) {
  const lines = [];       // by id
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
  const endText = async () => {
    await print(stream.end());
    await end();
  };
  for await (const chunk of input()) {
    let rest = chunk;
    for (let at = rest.indexOf(0); nul && at >= 0; at = rest.indexOf(0)) {
      await print(stream.push(rest.subarray(0, at)));
      await endText();
      rest = rest.subarray(at + 1);
    }
    await print(stream.push(rest));
  }
  await endText();
}
