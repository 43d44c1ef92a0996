// SPDX-License-Identifier: MIT
// The chat page with a played model (played-model.js), for events that are rare with a real engine, or need a large
// machine.
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildSite } from '../../tools/site.mjs';
import { PROJECT } from './browser.mjs';

/**
 * @param {{model?: string, build?: typeof buildSite}} [options] model: path of a script that exports `load`; build: that
 *   of another version of the page
 * @returns {Promise<{root: string, remove: () => Promise<void>}>} a folder with the page
 */
export async function playedSite({ model = 'tests/web/played-model.js', build = buildSite } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'quern-played-'));
  const [dist, out] = [join(folder, 'dist'), join(folder, 'site')];
  await cp(join(PROJECT, 'dist'), dist, { recursive: true });
  const from = (path) => JSON.stringify(join(PROJECT, path));
  await writeFile(join(dist, 'index.js'), `export { QuernError, models, support } from ${from('js/index.js')};\nexport { load } from ${from(model)};\n`);
  await build({ dist, out });
  await cp(join(PROJECT, 'tests/web/played-writer.js'), join(out, 'played-writer.js'));
  return { root: out, remove: () => rm(folder, { recursive: true, force: true }) };
}
