// SPDX-License-Identifier: MIT
// Copies the files that a page loads (the workers, the engines and the code that is loaded later) to a bundle whose
// bundler copies no files. They are the files in the exports of package.json.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { interrupted } from './cli-signals.js';
import { out } from './cli-terminal.js';
import { bytesText } from './cli-units.js';
import { writeWhole } from './whole-file.js';
import { badParam } from '../shared/errors.js';
import { makeFolder } from '../store/folder-node.js';

const ROOT = new URL('../', import.meta.url);     // root of the package, seen from its dist/

/** Paths in the package. */
function files() {
  const { exports } = createRequire(import.meta.url)('../package.json');
  return Object.entries(exports).filter(([name]) => /\.(?:m?js|wasm)$/.test(name)).map(([, path]) => path);
}

/** Copies the files. Each replaces an existing one, and is written completely or not at all. */
export async function copy({ model: folder }) {
  if (folder === '') throw badParam('DIR', 'must name a folder');
  await makeFolder(folder, 0o777).catch(({ code }) => { throw badParam('DIR', `cannot be made (${code})`); });
  const all = files();
  let size = 0;
  for (const path of all) {
    const bytes = await readFile(fileURLToPath(new URL(path, ROOT)), { signal: interrupted });
    await writeWhole('DIR', join(folder, basename(path)), bytes, interrupted);
    size += bytes.length;
  }
  await out(`${bytesText(size)} in ${all.length} files, of which a page loads few: ${folder}\n`);
}
