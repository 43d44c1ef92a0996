// SPDX-License-Identifier: MIT
// How fast each model of the dialog is here: what was measured while it wrote replies, or else an estimate, which says
// so. Estimates come from one measurement of the device (yardstick.js), once in a month and for each build of the
// engine: when the dialog has been open for a moment, while nothing is loaded or written. Fetched with the first
// dialog.
import { element } from '../../shell/dom.js';
import { read, write } from '../../shell/storage.js';
import { say } from '../../shell/words.js';
import { measure } from './yardstick.js';

const KEY = 'quern:device';
const KEY_MODELS = 'quern:speeds';

const MONTH_MS = 30 * 24 * 3600 * 1000;

/** The dialog is open for this long before the device is measured. */
const REST_MS = 1500;

/** Most models whose speeds are kept. */
const MOST = 100;

/** Of smaller models other work than reading weights decides the speed, so they have no estimate. */
const LEAST = 50e6;

/** Attention, and the types of weights that need more work than Q8_0, take this much of the foretold speed. */
const LOSS = 0.85;

const isSpeed = (value) => Number.isFinite(value) && value > 0;

/** Addresses, and the speeds of their models in tokens a second, the latest first. @returns {[string, number][]} */
function measured() {
  const stored = read(KEY_MODELS);
  return (Array.isArray(stored) ? stored : []).filter((row) => typeof row?.[0] === 'string' && isSpeed(row[1]));
}

const plain = (url) => url.split(/[?#]/)[0];

/** Notes how fast a model has written a reply; the mean of this and the speeds before counts. */
export function note(source, tokensPerSecond) {
  const url = plain(source);
  const all = measured();
  const [, before = tokensPerSecond] = all.find(([one]) => one === url) ?? [];
  const others = all.filter(([one]) => one !== url).slice(0, MOST - 1);
  write(KEY_MODELS, [[url, (before + tokensPerSecond) / 2], ...others]);
}

/** Bytes of weights that this device reads in a second; 0: not measured. */
function rateOf(variant) {
  const { rate, at, build } = read(KEY) ?? {};
  return isSpeed(rate) && build === variant && Math.abs(Date.now() - at) < MONTH_MS ? rate : 0;
}

/** Two digits are all that an estimate has. */
const rounded = (n) => (n < 10 ? Number(n.toPrecision(n < 1 ? 1 : 2)) : Number(n.toPrecision(2)));

/** Of a model with experts, a token reads only some of its weights. */
const hasExperts = (url) => /[-_.]A\d+(?:\.\d+)?B\b/i.test(url);

function sentenceFor({ url, size }, speeds, rate) {
  const speed = speeds.get(plain(url));
  if (speed) return say`Measured here: ${rounded(speed)} tokens a second.`;
  if (!rate || !(size > LEAST) || hasExperts(url)) return '';
  return say`Estimate for this device: about ${rounded((LOSS * rate) / size)} tokens a second.`;
}

function fill(rate) {
  const speeds = new Map(measured());
  for (const row of document.querySelectorAll('.shelf li[data-url]')) {
    const says = sentenceFor(row.dataset, speeds, rate);
    const line = row.querySelector('.pace') ?? element('p', { className: 'pace' });
    line.textContent = says;
    if (says) row.querySelector('.row-text').append(line);
  }
}

const isFree = () => ['ready', 'none'].includes(document.documentElement.dataset.state);

let waiting = false;

/**
 * Shows the speeds in the rows that have an address and a size (`data-url`, `data-size`).
 * @param {typeof import('quern').load} load
 * @param {string} variant of the engine that runs here
 * @param {() => boolean} isOpen whether the dialog is open
 */
export async function showSpeeds(load, variant, isOpen) {
  fill(rateOf(variant));
  if (rateOf(variant) || waiting) return;
  waiting = true;
  await new Promise((done) => { setTimeout(done, REST_MS); });
  if (isOpen() && isFree()) {
    const rate = await measure(load).catch(() => 0);
    if (isSpeed(rate) && isFree()) write(KEY, { rate, at: Date.now(), build: variant });
  }
  waiting = false;
  fill(rateOf(variant));
}
