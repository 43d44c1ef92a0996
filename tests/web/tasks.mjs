// SPDX-License-Identifier: MIT
// Measures how long a page's main thread is busy at a stretch: processor time per task, from Chromium's own trace. On a
// busy machine, time on the clock would measure the other programs.

/**
 * A machine is overloaded if a busy loop of this many ms gets less than two thirds of them. Then tasks may take twice
 * as long.
 */
const PROBE_MS = 200;
const OVERLOAD = 1.5;
const OVERLOAD_ALLOWANCE = 2;

/** Ratio of time on the clock to processor time, for a busy loop. */
function probeLoad() {
  const start = performance.now();
  const before = process.cpuUsage();
  while (performance.now() - start < PROBE_MS);
  const { user, system } = process.cpuUsage(before);
  return PROBE_MS / ((user + system) / 1000);
}

/**
 * @returns {{load: number, allowance: number}} how busy the machine is, and the factor by which tasks may take longer
 */
export function measureLoad() {
  const load = probeLoad();
  return { load, allowance: load > OVERLOAD ? OVERLOAD_ALLOWANCE : 1 };
}

/** Index of the first event that does not begin before a time, by bisection: long traces have a million events. */
function firstAt(events, time) {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle].ts < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Tasks of the thread that wrote the mark: {start, cpu (ms), what}, without those that serve the test's own questions.
 */
export function tasksOf(events, mark) {
  const { pid, tid } = events.find(({ name }) => name === mark);
  const mine = events.filter((event) => event.pid === pid && event.tid === tid);
  const whole = mine.filter(({ ph }) => ph === 'X').sort((a, b) => a.ts - b.ts);
  const within = (outer) => whole.slice(firstAt(whole, outer.ts), firstAt(whole, outer.ts + outer.dur));
  const isDevTools = ({ args }) => args?.chrome_mojo_event_info?.mojo_interface_tag?.includes('DevTools');
  return mine.filter(({ ph, name, tdur }) => ph === 'X' && name.endsWith('RunTask') && tdur > 1000)
    .map((task) => ({ start: task.ts, cpu: task.tdur / 1000, inner: within(task) }))
    .filter(({ inner }) => !inner.some(isDevTools))
    .map(({ start, cpu, inner }) => ({ start, cpu, what: inner.toSorted((a, b) => b.dur - a.dur).slice(1, 4).map(({ name }) => name) }));
}

export const longest = (tasks) => tasks.reduce((most, task) => (task.cpu > most.cpu ? task : most), { cpu: 0, what: [] });
export const describe = ({ cpu, what }) => `${cpu.toFixed(1)} ms of processor time (${what.join(', ')})`;

/** The required categories of a trace. */
export const CATEGORIES = ['toplevel', 'blink.user_timing', 'devtools.timeline'];
