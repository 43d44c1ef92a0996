// SPDX-License-Identifier: MIT
// Numbers as people read them. Decimal units throughout, as on the pages where models are downloaded.

/**
 * 4096 -> "4,096". Not by Intl, whose first use costs a browser some 40 ms: as much as all else that this page starts
 * with.
 */
export const count = (n) => String(Math.round(n)).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');

/** 2986464 -> "3.0 MB" */
export function bytes(n) {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  let value = n;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** 2755328 -> "2.8 million" */
export function parameters(n) {
  return n >= 1e9 ? `${(n / 1e9).toFixed(1)} billion` : `${(n / 1e6).toFixed(n >= 1e8 ? 0 : 1)} million`;
}

/** Milliseconds -> "40 ms", "0.4 s", "12 s", "2 min 5 s" */
export function duration(ms) {
  if (ms < 100) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** Tokens per second, one digit where it matters; nothing for 0, which stands for not measured. */
export const speed = (n) => (n ? `${n < 10 ? n.toFixed(1) : count(n)} tokens/s` : '');

/**
 * Text of foreign origin (file names, error details, model names) for one line of ours: control and direction
 * characters removed, length bounded.
 */
export function oneLine(text, limit = 200) {
  const clean = String(text ?? '').replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  return clean.length > limit ? `${clean.slice(0, limit - 1)}…` : clean;
}

const formats = {};

/** Made when a date is shown: a browser takes some ten milliseconds for its first one. */
const format = (name) =>
  (formats[name] ??= new Intl.DateTimeFormat(
    undefined,
    name === 'day' ? { dateStyle: 'medium' } : { timeStyle: 'short' },
  ));

/** The hour of today, the day of any other. */
export const when = (time) =>
  format(new Date(time).toDateString() === new Date().toDateString() ? 'hour' : 'day').format(time);
