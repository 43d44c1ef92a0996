// SPDX-License-Identifier: MIT
// The report as an image: grouped bars, one panel per figure, one group per file type. It brings its own background, and
// follows the viewer's choice of light or dark.
import { ENGINES } from './engines.mjs';

const PANELS = { prefill512: 'Prefill, 512 tokens', decode128: 'Decode, at 128 tokens' };

/** Bars of a group, and their colours in light and dark. */
const BARS = {
  wllama: ['#b0b7c0', '#6e7681'], webkit: ['#c58fd6', '#a873bd'], firefox: ['#f2a65a', '#d9822b'],
  simd: ['#8fc7bd', '#1d6f64'], quern: ['#0f7b6c', '#2bb3a0'], native: ['#5b7fd1', '#6d93ea'],
};

const WIDTH = 860;
const PANEL = { height: 180, gap: 70, left: 16, top: 98 };
const BAR = { width: 26, gap: 4 };
const LEGEND = { columns: 3, row: 20 };

export const escapeText = (text) => String(text).replace(/[<>&"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const STYLE = `<style>
  text { font: 12px system-ui, sans-serif; fill: #1f2328 } .title { font-size: 14px; font-weight: 600 } .value { font-size: 11px }
  .page { fill: #ffffff } .axis { stroke: #d1d9e0 }
${Object.entries(BARS).map(([name, [light]]) => `  .${name} { fill: ${light} }\n`).join('')}  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .page { fill: #0d1117 } .axis { stroke: #3d444d }
${Object.entries(BARS).map(([name, [, dark]]) => `    .${name} { fill: ${dark} }\n`).join('')}  }
</style>`;

const text = (x, y, content, { kind = '', anchor = 'start' } = {}) => `<text x="${x}" y="${y}" class="${kind}" text-anchor="${anchor}">${escapeText(content)}</text>`;

/** One bar with its value above it. `length` in pixels. */
function bar(engine, x, bottom, length, value) {
  const top = bottom - length;
  return `<rect class="${engine}" x="${x}" y="${top.toFixed(1)}" width="${BAR.width}" height="${length.toFixed(1)}" rx="2"/>`
    + text(x + BAR.width / 2, (top - 4).toFixed(1), value < 10 ? value.toFixed(1) : value.toFixed(0), { kind: 'value', anchor: 'middle' });
}

/** One figure of all cases, the panel's upper left corner at (left, y). */
function panel(cases, figure, y) {
  const shown = Object.keys(BARS);
  const values = cases.map(({ engines }) => shown.map((name) => engines[name]?.[figure]?.median));
  const most = Math.max(1, ...values.flat().filter(Number.isFinite));
  const bottom = y + PANEL.height;
  const group = (WIDTH - 2 * PANEL.left) / cases.length;
  const width = shown.length * (BAR.width + BAR.gap);
  const parts = [text(PANEL.left, y - 12, `${PANELS[figure]}: tokens per second`, { kind: 'title' })];
  for (const [i, { type }] of cases.entries()) {
    const left = PANEL.left + i * group + (group - width) / 2;
    for (const [j, name] of shown.entries()) {
      const value = values[i][j];
      if (value) parts.push(bar(name, left + j * (BAR.width + BAR.gap), bottom, ((PANEL.height - 16) * value) / most, value));
    }
    parts.push(text(left + width / 2, bottom + 18, type.toUpperCase(), { anchor: 'middle' }));
  }
  parts.push(`<line class="axis" x1="${PANEL.left}" x2="${WIDTH - PANEL.left}" y1="${bottom}" y2="${bottom}"/>`);
  return parts.join('\n');
}

function legend() {
  const step = (WIDTH - 2 * PANEL.left) / LEGEND.columns;
  return Object.keys(BARS).map((name, i) => {
    const x = PANEL.left + (i % LEGEND.columns) * step;
    const y = 14 + LEGEND.row * Math.floor(i / LEGEND.columns);
    return `<rect class="${name}" x="${x.toFixed(1)}" y="${y}" width="12" height="12" rx="2"/>${text((x + 18).toFixed(1), y + 10, ENGINES[name].name)}`;
  }).join('\n');
}

/** @param {{machine: object, summary: {cases: object[]}}} report @returns {string} an SVG of the cases with most threads */
export function chart({ machine, summary }) {
  const threads = Math.max(...summary.cases.map((one) => one.threads));
  const cases = summary.cases.filter((one) => one.threads === threads);
  const figures = Object.keys(PANELS);
  const height = PANEL.top + figures.length * (PANEL.height + PANEL.gap) - 8;
  const panels = figures.map((figure, i) => panel(cases, figure, PANEL.top + i * (PANEL.height + PANEL.gap)));
  const note = text(PANEL.left, height - 10, `${machine.cpu}, ${threads} threads; Qwen3-0.6B's dimensions; more is better; ${machine.date}`, { kind: 'value' });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Speeds of the engines">
${STYLE}
<rect class="page" width="${WIDTH}" height="${height}" rx="6"/>
${legend()}
${panels.join('\n')}
${note}
</svg>
`;
}
