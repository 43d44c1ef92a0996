// SPDX-License-Identifier: MIT
// The report's page: plots by operation, the comparison with the run before, and all figures as tables. Runs inside the file
// that ops-report.mjs writes, with uPlot beside it.
/* global uPlot */

const given = (id) => JSON.parse(document.getElementById(id).textContent);
const run = given('run');
const comparison = given('comparison');
const main = document.querySelector('main');

const series = [...new Set(run.targets.flatMap(({ cells }) => cells.map((cell) => cell.series)))];
const lengths = [...new Set(run.targets.flatMap(({ cells }) => cells.map(({ length }) => length)))].sort((a, b) => a - b);
const cellOf = (target, name, length) => target.cells.find((cell) => cell.series === name && cell.length === length);

/** What is plotted of a cell. */
const MEASURES = {
  speed: { unit: 'GMAC/s', of: ({ macs, min }) => macs / min / 1e6 },
  perRow: { unit: 'µs per row', of: ({ min, rows }) => (1000 * min) / rows },
  bandwidth: { unit: 'GB/s', of: ({ bytes, min }) => bytes / min / 1e6 },
};

const element = (tag, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const digits = (value) => (value == null ? '–' : value >= 100 ? Math.round(value).toLocaleString('en') : value >= 10 ? value.toFixed(1) : value.toPrecision(3));

// --- plots ---

const plots = [];    // () => void: draw anew, in the colours of the moment

const axis = (label, values) => ({
  label, labelSize: 18, labelFont: '12px system-ui', font: '11px system-ui', stroke: style('--dim'), values,
  grid: { stroke: style('--grid'), width: 1 }, ticks: { stroke: style('--grid'), width: 1 },
});

/** Labels for every second power of two at most. */
const powers = (_, splits) => splits.map((value) => (Number.isInteger(Math.log2(value)) && Math.log2(value) % 2 === 0 ? value.toLocaleString('en') : ''));

function optionsOf({ lines, measure, xLabel, log }, width) {
  return {
    width, height: 230, padding: [8, 22, 0, 0],
    cursor: { sync: { key: 'length' }, points: { size: 7 }, drag: { x: false, y: false } },
    scales: { x: { time: false, distr: 3, log: 2 }, y: log ? { distr: 3 } : { range: (_, __, max) => [0, max * 1.08 || 1] } },
    axes: [{ ...axis(xLabel, powers), size: 30 }, { ...axis(measure.unit, (_, splits) => splits.map((value) => (value == null ? '' : String(+value.toPrecision(3))))), size: 54 }],
    series: [
      { label: xLabel, value: (_, value) => (value == null ? '–' : value.toLocaleString('en')) },
      ...lines.map(({ label, colour }) => ({
        label, stroke: style(`--c${colour}`), width: 2, points: { show: true, size: 4, fill: style(`--c${colour}`) }, value: (_, value) => digits(value),
      })),
    ],
  };
}

/** A card with one plot. `lines` are {label, colour, target, series}. */
function plot(title, note, { lines, ...how }) {
  const present = lines.filter(({ target, series: name }) => target.cells.some((cell) => cell.series === name));
  if (present.length === 0) return [];
  const data = [lengths, ...present.map(({ target, series: name }) => lengths.map((length) => {
    const cell = cellOf(target, name, length);
    return cell ? how.measure.of(cell) : null;
  }))];
  const place = element('div');
  let drawn;
  plots.push(() => {
    drawn?.destroy();
    drawn = new uPlot(optionsOf({ ...how, lines: present }, place.clientWidth), data, place);
  });
  new ResizeObserver(() => drawn?.setSize({ width: place.clientWidth, height: 230 })).observe(place);
  return [element('figure', { className: 'card' }, element('figcaption', {}, title, element('span', {}, note ? ` ${note}` : '')), place)];
}

const byTarget = (name) => run.targets.map((target, colour) => ({ label: target.name, colour, target, series: name }));
const ofTarget = (target, names) => names.map((name, colour) => ({ label: name.replace('matmul ', ''), colour, target, series: name }));

function section(title, text, ...cards) {
  const inside = cards.flat(Infinity);
  if (inside.length) main.append(element('h2', {}, title), element('p', {}, text), element('div', { className: inside.length === 4 ? 'grid four' : 'grid' }, ...inside));
}

function plotAll() {
  const { speed, perRow, bandwidth } = MEASURES;
  const products = series.filter((name) => name.startsWith('matmul'));
  section('Products', 'Rows times a matrix [3072, 1024]; the matrices go round 64 MB, so one row reads from memory. One row is decoding, 64 rows are the engine\'s chunk.',
    run.targets.map((target) => plot(target.name, '', { lines: ofTarget(target, products), measure: speed, xLabel: 'rows' })));
  section('Attention', '16 heads over 8 key-value heads of 128 columns in f16. A prefill is the chunk of up to 64 rows that ends at the position, decoding the one row there.',
    plot('Prefill', 'a chunk', { lines: byTarget('attention, prefill'), measure: perRow, xLabel: 'position', log: true }),
    plot('Decode', 'one row', { lines: byTarget('attention, decode'), measure: perRow, xLabel: 'position', log: true }),
    plot('Decode', 'keys and values read', { lines: byTarget('attention, decode'), measure: bandwidth, xLabel: 'position' }));
  section('Transformer block', 'A whole layer of Qwen3-0.6B: the model has 28 of them.',
    series.filter((name) => name.startsWith('block')).map((name) => plot(name.replace('block ', ''), '', { lines: byTarget(name), measure: perRow, xLabel: 'position', log: true })));
  section('Batches', 'One row each of so many conversations, which have 256 positions. Of 128 experts of 256 columns 8 work for a row.',
    series.filter((name) => name.endsWith(', batch')).map((name) => plot(name.replace(', batch', ''), '', { lines: byTarget(name), measure: perRow, xLabel: 'rows', log: true })));
  section('Operations by row', 'Inputs stay in the cache while they fit. Several rows of more than 16,384 numbers are shared by the threads.',
    [['rmsnorm', 'RMSNorm', '[1024]'], ['rope', 'RoPE', '16 heads of 128'], ['swiglu', 'SwiGLU', '[3072]'], ['kv_append', 'KV append', '2 x 1024 numbers to f16']]
      .map(([name, title, note]) => plot(title, note, { lines: byTarget(name), measure: perRow, xLabel: 'rows' })));
}

// --- the comparison and the figures ---

/** A tint that grows with the change; within 5 % there is none. */
function tint(ratio) {
  const change = Math.min(1, Math.max(0, (Math.abs(Math.log2(ratio)) - 0.07) / 1.2));
  return change ? `rgb(var(--${ratio > 1 ? 'faster' : 'slower'}) / ${(0.12 + 0.5 * change).toFixed(2)})` : '';
}

const times = (ratio) => `${ratio.toFixed(2)}x`;

function changes(title, cells) {
  const rows = cells.map(({ ratio, name, series: what, length, was, now }) => {
    const first = element('td', {}, times(ratio));
    first.style.background = tint(ratio);
    return element('tr', {}, first, element('td', {}, `${what}, ${length.toLocaleString('en')} · ${name}`), element('td', {}, `${digits(was * 1000)} → ${digits(now * 1000)} µs`));
  });
  return element('div', { className: 'card' }, element('figcaption', {}, title), element('table', {}, element('tbody', {}, ...rows)));
}

function figures(target, ratios) {
  const head = element('tr', {}, element('th', {}, 'µs'), ...lengths.map((length) => element('th', {}, length.toLocaleString('en'))));
  const rows = series.map((name) => element('tr', {}, element('th', {}, name), ...lengths.map((length) => {
    const cell = cellOf(target, name, length);
    const ratio = ratios.get(`${target.key}|${name}|${length}`);
    const shown = element('td', { title: cell ? `median ${digits(cell.median * 1000)} µs of ${cell.samples} samples${ratio ? `; ${times(ratio)} as fast as before` : ''}` : '' },
      cell ? digits(cell.min * 1000) : '');
    if (ratio) shown.style.background = tint(ratio);
    return shown;
  })));
  return element('details', { className: 'card', open: target === run.targets[0] }, element('summary', {}, target.name),
    element('div', { className: 'scroll' }, element('table', { className: 'figures' }, element('thead', {}, head), element('tbody', {}, ...rows))));
}

function tables() {
  const cells = comparison?.cells ?? [];
  if (cells.length) {
    const { machine, machineLoad } = comparison;
    main.append(element('h2', {}, 'Beside the run before'),
      element('p', {}, `${machine.commit} of ${machine.date} on ${machine.cpu}, machine load ${machineLoad}: ${cells.length} cells, `
        + `in the median ${times(cells[cells.length >> 1].ratio)} as fast. The more the machine had to do, the less a single ratio says.`),
      element('div', { className: 'changes' }, changes('Slowest beside it', comparison.worst), changes('Fastest beside it', comparison.best)));
  }
  const ratios = new Map(cells.map(({ target, series: name, length, ratio }) => [`${target}|${name}|${length}`, ratio]));
  main.append(element('h2', {}, 'All figures'), element('p', {}, `Microseconds of one call by rows or position. ${cells.length ? 'Green is faster than in the run before, red slower. ' : ''}Calls of over a second or so are left out.`),
    ...run.targets.map((target) => figures(target, ratios)));
}

plotAll();
tables();
const draw = () => plots.forEach((again) => again());
draw();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
