// SPDX-License-Identifier: MIT
// How long the page's main thread was busy at a stretch, from Chromium's own trace: every task of every thread is in it.

const CATEGORIES = ['toplevel', 'disabled-by-default-devtools.timeline', '__metadata'];

/**
 * Runs `work` under a trace.
 * @returns {Promise<{value: any, wallMs: number, busyMs: number}>} the longest task of the renderers' main threads, by the clock and
 *   by the time the thread really ran, which is less where the machine has more to do than processors
 */
export async function traced(browser, page, work) {
  await browser.startTracing(page, { categories: CATEGORIES });
  const value = await work();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const thread = ({ pid, tid }) => `${pid} ${tid}`;
  const main = new Set(traceEvents.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(thread));
  const tasks = traceEvents.filter((event) => event.ph === 'X' && /RunTask$/.test(event.name) && main.has(thread(event)));
  if (tasks.length === 0) throw new Error('the trace has no tasks of a main thread');
  const longest = (duration) => tasks.reduce((most, task) => Math.max(most, duration(task)), 0) / 1000;
  return { value, wallMs: longest(({ dur }) => dur ?? 0), busyMs: longest(({ dur, tdur }) => tdur ?? dur ?? 0) };
}
