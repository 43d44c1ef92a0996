// SPDX-License-Identifier: MIT
// Formats numbers in readable units, and columns.

export const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ',');
export const plural = (n, noun) => `${grouped(n)} ${noun}${n === 1 ? '' : 's'}`;

/**
 * Formats with three digits and the largest unit that leaves one before the point: 1,536 bytes are 1.5 KiB,
 * 30,532,122,624 parameters are 30.5 B.
 */
function scaled(value, step, units) {
  let i = 0;
  let rest = value;
  for (; rest >= step && i + 1 < units.length; i++) rest /= step;
  const digits = i === 0 ? 0 : rest < 10 ? 2 : rest < 100 ? 1 : 0;
  return `${rest.toFixed(digits)}${units[i]}`;
}

export const bytesText = (n) => scaled(n, 1024, [' bytes', ' KiB', ' MiB', ' GiB', ' TiB']);
export const countText = (n) => scaled(n, 1000, ['', ' K', ' M', ' B', ' T']);

/** 80: 1 min 20 s. */
export function timeText(seconds) {
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (whole < 60) return `${whole} s`;
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Formats rows as lines, each column as wide as its widest cell. `right`: columns of numbers, aligned to the right. */
export function columns(rows, right = []) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  return rows.map((row) =>
    row
      .map((cell, i) => (right.includes(i) ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
      .join('  ')
      .trimEnd(),
  );
}
