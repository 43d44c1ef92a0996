// SPDX-License-Identifier: MIT
// Writes a time as Python's strftime() does, with the names of the C locale.

const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

const [CLOCK, DATE] = ['%H:%M:%S', '%m/%d/%y'];

/** Fields that stand for several others. */
const LONG = {
  c: `%a %b %e ${CLOCK} %Y`,
  D: DATE,
  F: '%Y-%m-%d',
  R: '%H:%M',
  r: '%I:%M:%S %p',
  T: CLOCK,
  X: CLOCK,
  x: DATE,
};

/** Fields with a text or a number; a number may have a width and a fill, which is a zero by default. */
function fieldsOf(time) {
  const [year, month, day, hour] = [time.getFullYear(), time.getMonth(), time.getDate(), time.getHours()];
  const [sunday, half] = [time.getDay(), hour % 12 || 12];
  const monday = (sunday + 6) % 7;
  const yearDay = Math.round((Date.UTC(year, month, day) - Date.UTC(year, 0, 1)) / 864e5);
  const week = (weekday) => Math.floor((yearDay + 7 - weekday) / 7);
  const [name, half2] = [MONTHS[month], hour < 12 ? 'am' : 'pm'];
  return {
    '%': ['%'],
    n: ['\n'],
    t: ['\t'],
    Z: [''],
    z: [''],
    A: [DAYS[monday]],
    a: [DAYS[monday].slice(0, 3)],
    B: [name],
    b: [name.slice(0, 3)],
    h: [name.slice(0, 3)],
    P: [half2],
    p: [half2.toUpperCase()],
    C: [Math.floor(year / 100), 2],
    d: [day, 2],
    e: [day, 2, ' '],
    f: [time.getMilliseconds() * 1000, 6],
    H: [hour, 2],
    I: [half, 2],
    j: [yearDay + 1, 3],
    k: [hour, 2, ' '],
    l: [half, 2, ' '],
    M: [time.getMinutes(), 2],
    m: [month + 1, 2],
    S: [time.getSeconds(), 2],
    s: [Math.floor(time / 1000)],
    U: [week(sunday), 2],
    u: [monday + 1],
    W: [week(monday), 2],
    w: [sunday],
    Y: [year],
    y: [year % 100, 2],
  };
}

/** Writes the time of the rendering. Flags: '-' no padding, '_' spaces, '0' zeros. Unknown fields stay as they are. */
export function timeText(meter, format) {
  meter.count(16 * format.length);
  const fields = fieldsOf(meter.now);
  const written = (text) => text.replace(/%([-_0]?)([a-zA-Z%])/g, (all, flag, letter) => {
    if (LONG[letter]) return written(LONG[letter]);
    const [value, width = 0, fill = '0'] = fields[letter] ?? [all];
    return String(value).padStart(flag === '-' ? 0 : width, flag === '_' ? ' ' : flag || fill);
  });
  return written(format);
}
