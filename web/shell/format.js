// SPDX-License-Identifier: MIT
// Formats numbers for people, in decimal units, as on the pages where models are downloaded.
import { isolated, moment, number, plural, say } from './words.js';

/** 2986464 -> "3.0 MB" */
export function bytes(n) {
  let unit = 0;
  let value = n;
  while (value >= 999.5 && unit < 4) {
    value /= 1000;
    unit++;
  }
  const amount = number(value, unit === 0 || value >= 100 ? 0 : 1);
  const units = [say`${amount} bytes`, say`${amount} kB`, say`${amount} MB`, say`${amount} GB`, say`${amount} TB`];
  return isolated(units[unit]);
}

/** "4,096 tokens" */
export const tokens = (n) => plural(n, '{1} token', '{1} tokens');

/** Milliseconds -> "40 ms", "0.4 s", "12 s", "2 min 5 s" */
export function duration(ms) {
  if (ms < 100) return say`${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return say`${number(seconds, seconds < 10 ? 1 : 0)} s`;
  return say`${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** Tokens per second, with a digit after the point below 10; '' for 0, which means not measured. */
export const speed = (n) => (n ? say`${number(n, n < 10 ? 1 : 0)} tokens/s` : '');

/**
 * Puts foreign text (file names, error details, model names) into one line: without control and direction characters,
 * and with a bounded length.
 */
export function oneLine(text, limit = 200) {
  const clean = String(text ?? '').replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  return clean.length > limit ? `${clean.slice(0, limit - 1)}…` : clean;
}

/** The time if it is today, else the date. */
export const when = (time) => {
  const isToday = new Date(time).toDateString() === new Date().toDateString();
  return moment(time, isToday ? { timeStyle: 'short' } : { dateStyle: 'medium' });
};

const midnight = (time) => new Date(time).setHours(0, 0, 0, 0);

/** The part of the past to which a time belongs: a day, the last week, or a month. */
export function period(time) {
  const days = Math.round((midnight(Date.now()) - midnight(time)) / 86_400_000);
  if (days > 7) return moment(time, { month: 'long', year: 'numeric' });
  return days > 1 ? say`Previous 7 days` : (days === 1 ? say`Yesterday` : say`Today`);
}
