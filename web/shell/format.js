// SPDX-License-Identifier: MIT
// Formats numbers for people, in decimal units, as on the pages where models are downloaded.

/**
 * 4096 -> "4,096". It avoids Intl, whose first use takes a browser some 40 ms, as long as everything else at the start.
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

/** Tokens per second, with a digit after the point below 10; '' for 0, which means not measured. */
export const speed = (n) => (n ? `${n < 10 ? n.toFixed(1) : count(n)} tokens/s` : '');

/**
 * Puts foreign text (file names, error details, model names) into one line: without control and direction characters,
 * and with a bounded length.
 */
export function oneLine(text, limit = 200) {
  const clean = String(text ?? '').replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  return clean.length > limit ? `${clean.slice(0, limit - 1)}…` : clean;
}

const formats = {};

/** Makes a format when it is first needed, since the first one takes a browser some ten milliseconds. */
const format = (name) =>
  (formats[name] ??= new Intl.DateTimeFormat(
    undefined,
    { hour: { timeStyle: 'short' }, day: { dateStyle: 'medium' }, month: { month: 'long', year: 'numeric' } }[name],
  ));

/** The time if it is today, else the date. */
export const when = (time) =>
  format(new Date(time).toDateString() === new Date().toDateString() ? 'hour' : 'day').format(time);

const midnight = (time) => new Date(time).setHours(0, 0, 0, 0);

/** The part of the past to which a time belongs: a day, the last week, or a month. */
export function period(time) {
  const days = Math.round((midnight(Date.now()) - midnight(time)) / 86_400_000);
  if (days > 7) return format('month').format(time);
  return days > 1 ? 'Previous 7 days' : (days === 1 ? 'Yesterday' : 'Today');
}
