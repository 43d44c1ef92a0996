// SPDX-License-Identifier: MIT
// The commands for stored models (download, list, remove) and saved conversations (kept, forget).

import { stopWith } from './cli-signals.js';
import { out, showStatus } from './cli-terminal.js';
import { bytesText, columns, grouped, timeText } from './cli-units.js';
import { badParam, harmless } from '../shared/errors.js';
import { idOfSource } from '../store/identity.js';
import { models } from '../node.js';
import { platform } from '../page/platform-node.js';

/** Milliseconds over which a speed is measured. */
const RECENT = 5000;

const waitingText = ({ ms, message }) =>
  `${message} ${ms === null ? 'Waiting for it' : `Trying again in ${Math.ceil(ms / 1000)} s`} …`;

/**
 * Shows the progress of a download on a terminal: bytes, speed, remaining time.
 * @returns {(progress: import('../index.d.ts').Progress) => void}
 */
export function downloadProgress() {
  const seen = [];        // progress of the last RECENT ms
  return ({ phase, loaded, total, cached, waiting }) => {
    if (phase !== 'download' || cached) return showStatus('');
    const now = performance.now();
    seen.push({ now, loaded });
    while (seen.length > 2 && now - seen[0].now > RECENT) seen.shift();
    const speed = (1000 * (loaded - seen[0].loaded)) / (now - seen[0].now) || 0;
    const share = total ? ` of ${bytesText(total)} (${Math.floor((100 * loaded) / total)} %)` : '';
    const left = total && speed ? `, ${timeText((total - loaded) / speed)} left` : '';
    if (waiting) return showStatus(`${bytesText(loaded)}${share}: ${waitingText(waiting)}`);
    return showStatus(`${bytesText(loaded)}${share}${speed ? `, ${bytesText(speed)}/s` : ''}${left}`);
  };
}

export async function download({ model, load: { store, headers, vision } }) {
  const signal = stopWith('The download was stopped; the next one continues from the stored bytes.');
  const { id, size } = await models.download(model, { store, headers, vision, signal, onProgress: downloadProgress() });
  showStatus('');
  await out(`${bytesText(size)}  ${id}\n`);
}

const stateOf = ({ complete, loaded, size }) =>
  complete ? 'complete' : size ? `${Math.floor((100 * loaded) / size)} %` : 'begun';

/** A date as text. A stored file may contain any number. */
const dayOf = (time) => (time > 0 && time <= 8.64e15 ? new Date(time).toISOString().slice(0, 10) : 'never');

export async function list({ values, load: { store } }) {
  const all = await models.list({ store });
  const rows = all.map((model) => [bytesText(model.loaded), stateOf(model), dayOf(model.lastUsed), model.id]);
  const lines = columns([['size', 'state', 'used', 'model'], ...rows], [0]);
  await out(values.json ? `${JSON.stringify(all)}\n` : lines.map((line) => `${line}\n`).join(''));
}

export async function remove({ model, load: { store } }) {
  const all = await models.list({ store });
  const id = model === 'all' ? null : await idOfSource(platform.resolveSource(model).source);
  const wanted = model === 'all' ? all : all.filter((one) => one.id === id);
  if (model !== 'all' && wanted.length === 0)
    throw badParam('MODEL', 'is not a stored model (quern list)');
  for (const one of wanted) {
    await models.remove(one.id, { store });
    await out(`removed ${bytesText(one.loaded)}  ${one.id}\n`);
  }
}

/** A conversation's name in one line. */
const nameText = (name) => harmless(name).replace(/[\n\t]/g, ' ');

export async function saved({ values, load: { store } }) {
  const all = await models.saved({ store });
  const rows = all.map(({ name, tokens, bytes, date }) => [
    bytesText(bytes),
    grouped(tokens),
    dayOf(date),
    nameText(name),
  ]);
  const lines = columns([['size', 'tokens', 'used', 'name'], ...rows], [0, 1]);
  await out(values.json ? `${JSON.stringify(all)}\n` : lines.map((line) => `${line}\n`).join(''));
}

export async function forget({ model: name, load: { store } }) {
  const all = (await models.saved({ store })).filter((one) => name === 'all' || one.name === name);
  if (name !== 'all' && all.length === 0) throw badParam('NAME', 'is not a saved conversation (quern saved)');
  await models.forget(name === 'all' ? null : name, { store });
  for (const one of all) await out(`forgot ${bytesText(one.bytes)}  ${nameText(one.name)}\n`);
}
