// SPDX-License-Identifier: MIT
// The chat page over a library whose model is played (played-model.js): for what an engine does only now and then, or only on a large machine.
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildSite } from '../../tools/site.mjs';
import { PROJECT } from './browser.mjs';

/** @returns {Promise<{root: string, remove: () => Promise<void>}>} a folder with the page */
export async function playedSite() {
  const folder = await mkdtemp(join(tmpdir(), 'quern-played-'));
  const [dist, out] = [join(folder, 'dist'), join(folder, 'site')];
  await cp(join(PROJECT, 'dist'), dist, { recursive: true });
  const from = (path) => JSON.stringify(join(PROJECT, path));
  await writeFile(join(dist, 'index.js'), `export { QuernError, models, support } from ${from('js/index.js')};\nexport { load } from ${from('tests/web/played-model.js')};\n`);
  await buildSite({ dist, out });
  await cp(join(PROJECT, 'tests/web/played-writer.js'), join(out, 'played-writer.js'));
  return { root: out, remove: () => rm(folder, { recursive: true, force: true }) };
}
