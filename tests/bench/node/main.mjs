// SPDX-License-Identifier: MIT
// The process of child.mjs: answers calls of what the module named in its argument exports.
import { pathToFileURL } from 'node:url';

const module = await import(pathToFileURL(process.argv[2]));

process.on('message', async ({ id, name, options }) => {
  try {
    process.send({ id, value: await module[name](options) });
  } catch (error) {
    process.send({ id, error: error.stack });
  }
});
process.on('disconnect', () => process.exit());
process.send({ ready: true });
