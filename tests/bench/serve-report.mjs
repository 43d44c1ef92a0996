// SPDX-License-Identifier: MIT
// What serve.mjs measured, in numbers and as a table.

/** The value below which that share of the values lies. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

const median = (values) => quantile(values, 0.5);

const times = (values) => ({ p50: quantile(values, 0.5), p95: quantile(values, 0.95), max: Math.max(...values) });

/** Of all repetitions: medians of the speeds, and quantiles of all requests' times in ms. */
function summariseLoops(runs) {
  const keys = [...new Set(runs.map(({ scene, clients, server }) => JSON.stringify({ scene, clients, server })))].map((key) => JSON.parse(key));
  return keys.map((key) => {
    const own = runs.filter(({ scene, clients, server }) => scene === key.scene && clients === key.clients && server === key.server);
    return {
      ...key, requestsPerSecond: median(own.map(({ requests, seconds }) => requests / seconds)), tokensPerSecond: median(own.map(({ tokens, seconds }) => tokens / seconds)),
      first: times(own.flatMap(({ first }) => first)), gap: times(own.flatMap(({ gaps }) => gaps)),
    };
  });
}

/** Two bounds: a newcomer waits at most twice as long as alone, and a step; a writer at most this long. In ms, for every newcomer by its own repetition. */
const firstBound = ({ alone, step }) => 2 * median(alone) + step;
const gapBound = ({ step }) => 1.2 * Math.max(2 * step, step + 50);

function summariseNewcomers(runs) {
  return [...new Set(runs.map(({ server }) => server))].map((server) => {
    const own = runs.filter((run) => run.server === server);
    const of = (pick) => times(own.flatMap(pick));
    return {
      server, alone: of(({ alone }) => alone), step: of(({ step }) => [step]), first: of(({ first }) => first), gap: of(({ gaps }) => gaps),
      firstOfBound: of((run) => run.first.map((ms) => ms / firstBound(run))), gapOfBound: of((run) => run.gaps.map((ms) => ms / gapBound(run))),
    };
  });
}

/** @param {object[]} runs of serve.mjs */
export const summary = (runs) => ({
  load: { least: Math.min(...runs.map(({ machineLoad }) => machineLoad)), most: Math.max(...runs.map(({ machineLoad }) => machineLoad)) },
  loops: summariseLoops(runs.filter(({ gaps, alone }) => gaps && !alone)), newcomers: summariseNewcomers(runs.filter(({ alone }) => alone)),
});

const NAMES = { quern: '**quern serve**', llama: 'llama-server' };

const row = (cells) => `| ${cells.join(' | ')} |`;
const three = ({ p50, p95, max }, digits = 0) => [p50, p95, max].map((value) => value.toFixed(digits)).join(' / ');

function loopTable(loops, scenes) {
  if (loops.length === 0) return '';
  const rows = loops.toSorted((a, b) => a.scene.localeCompare(b.scene) || a.clients - b.clients || a.server.localeCompare(b.server)).map((one) => row([
    one.scene, one.clients, NAMES[one.server], one.requestsPerSecond.toFixed(2), one.tokensPerSecond.toFixed(1), three(one.first), three(one.gap)]));
  return `
## Clients in a closed loop

${Object.entries(scenes).map(([name, { words }]) => `*${name}*: ${words}.`).join(' ')} Speeds are totals of all clients, medians of the repetitions. Times are in ms, p50 / p95 / largest of all requests: to the first token, and between two tokens.

| | clients | | requests/s | tokens/s | first token | gap |
| --- | --: | --- | --: | --: | --: | --: |
${rows.join('\n')}
`;
}

function newcomerTable(newcomers) {
  if (newcomers.length === 0) return '';
  const rows = newcomers.map((one) => row([
    NAMES[one.server], three(one.alone), one.step.p50.toFixed(0), three(one.first), three(one.firstOfBound, 2), three(one.gap), three(one.gapOfBound, 2)]));
  return `
## A new request while four replies are written

Requests with 128 ids arrive one after the other while four replies are written. Times are in ms, p50 / p95 / largest. "Alone": the new request's first token without the others. D: between two tokens of a running reply while no request arrives (p50). "First token": with the others,
and as a share of its limit, 2 x alone + D. "Longest gap": a running reply's longest wait for a token while the new prompt was read, and as a share of its limit, 1.2 x the larger of 2 D and D + 50 ms.

| | alone | D | first token | of its bound | longest gap | of its bound |
| --- | --: | --: | --: | --: | --: | --: |
${rows.join('\n')}
`;
}

/** @param {{machine: object, llama: string | null, settings: object, load: object, loops: object[], newcomers: object[]}} report */
export function serveReport({ machine, llama, settings, load, loops, newcomers }, scenes) {
  return `# quern serve beside llama-server

Made by \`npm run bench -- --only serve\`. Qwen3-0.6B's dimensions in ${settings.type.toUpperCase()}, random weights, ${settings.threads} threads; ${llama ? `llama.cpp ${llama} as Debian packages it, with its best build for this processor` : 'llama.cpp was not available'}. ${machine.cpu}, ${machine.cores} cores,
Node ${machine.node}, ${machine.date}, quern ${machine.commit}. ${settings.requests} requests per client, ${settings.repeat} repetitions of both servers in turn, each newly started, never both at the same time. The machine's load was ${load.least} to ${load.most}: where it is above ${settings.threads}, other programs used the machine
too, and only neighbouring rows are comparable.
${loopTable(loops, scenes)}${newcomerTable(newcomers)}`;
}
