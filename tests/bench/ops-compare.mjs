// SPDX-License-Identifier: MIT
// Two runs of ops.mjs beside each other, cell by cell. A ratio above 1 is faster than before; minima are compared, which other
// work on the machine disturbs least.

const SHOWN = 8;

const keyOf = ({ key }, { series, length }) => `${key}|${series}|${length}`;

/** Cells that both runs have, slowest change first. */
export function compare(previous, run) {
  const before = new Map(previous.targets.flatMap((target) => target.cells.map((cell) => [keyOf(target, cell), cell.min])));
  const cells = run.targets.flatMap((target) => target.cells
    .filter((cell) => before.has(keyOf(target, cell)))
    .map(({ series, length, min }) => {
      const was = before.get(keyOf(target, { series, length }));
      return { target: target.key, name: target.name, series, length, was, now: min, ratio: was / min };
    }));
  cells.sort((a, b) => a.ratio - b.ratio);
  return { machine: previous.machine, machineLoad: previous.machineLoad, cells, worst: cells.slice(0, SHOWN), best: cells.slice(-SHOWN).reverse() };
}

const line = ({ ratio, name, series, length, was, now }) => `  ${ratio.toFixed(2)}x  ${name}: ${series}, ${length} (${was.toPrecision(3)} -> ${now.toPrecision(3)} ms)`;

export function comparisonText({ machine, cells, worst, best }) {
  if (cells.length === 0) return 'nothing to compare: the run before has none of these cells';
  const median = cells[cells.length >> 1].ratio;
  return [`beside ${machine.commit} of ${machine.date}: ${cells.length} cells, median ${median.toFixed(2)}x as fast`,
    'slowest beside it:', ...worst.map(line), 'fastest beside it:', ...best.map(line)].join('\n');
}
