// SPDX-License-Identifier: MIT
// The command line, again and again in one process (oneProcess() of program.mjs): a message with its words is answered by what it says, and its code.

import { main } from '../../dist/cli-main.js';

process.setMaxListeners(0);     // main() listens for signals each time

process.on('message', async (args) => {
  const got = { out: '', err: '' };
  for (const [name, stream] of [['out', process.stdout], ['err', process.stderr]]) {
    stream.write = (text) => {
      got[name] += text;
      return true;
    };
  }
  process.exitCode = 0;
  await main(args);
  process.send({ ...got, code: process.exitCode });
});
