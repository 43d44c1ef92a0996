// SPDX-License-Identifier: MIT
// Runs the command line repeatedly in one process (oneProcess() of program.mjs). A message brings arguments, input and
// additional environment; the answer has the output and the exit code.

import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';

setMaxListeners(0);             // each call of main() listens for signals, and for an interrupt that never comes
process.setMaxListeners(0);
const { main } = await import('../../../dist/cli-main.js');

const ENVIRONMENT = { ...process.env };

process.on('message', async ({ args, input, env }) => {
  const got = { out: '', err: '' };
  for (const [name, stream] of [['out', process.stdout], ['err', process.stderr]]) {
    stream.write = (text) => {
      got[name] += text;
      return true;
    };
  }
  Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input)]), configurable: true });
  process.env = { ...ENVIRONMENT, ...env };
  process.exitCode = 0;
  await main(args);
  process.send({ ...got, code: process.exitCode });
});
