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
export function summary(runs) {
  const keys = [...new Set(runs.map(({ scene, clients, server }) => JSON.stringify({ scene, clients, server })))].map((key) => JSON.parse(key));
  return keys.map((key) => {
    const own = runs.filter(({ scene, clients, server }) => scene === key.scene && clients === key.clients && server === key.server);
    return {
      ...key, requestsPerSecond: median(own.map(({ requests, seconds }) => requests / seconds)), tokensPerSecond: median(own.map(({ tokens, seconds }) => tokens / seconds)),
      first: times(own.flatMap(({ first }) => first)), gap: times(own.flatMap(({ gaps }) => gaps)), machineLoad: Math.max(...own.map(({ machineLoad }) => machineLoad)),
    };
  });
}

const NAMES = { quern: '**quern serve**', llama: 'llama-server' };

const row = (cells) => `| ${cells.join(' | ')} |`;

/** @param {{machine: object, llama: string | null, settings: object, summary: object[]}} report */
export function serveReport({ machine, llama, settings, summary: all }, scenes) {
  const ms = ({ p50, p95, max }) => [p50, p95, max].map((value) => value.toFixed(0)).join(' / ');
  const rows = all.toSorted((a, b) => a.scene.localeCompare(b.scene) || a.clients - b.clients || a.server.localeCompare(b.server)).map((one) => row([
    one.scene, one.clients, NAMES[one.server], one.requestsPerSecond.toFixed(2), one.tokensPerSecond.toFixed(1), ms(one.first), ms(one.gap)]));
  return `# quern serve beside llama-server

Qwen3-0.6B's dimensions in ${settings.type.toUpperCase()}, random weights, ${settings.threads} threads; ${llama ? `llama.cpp ${llama} as Debian packages it, with its best build for this processor` : 'no llama.cpp was to be had'}. ${machine.cpu}, ${machine.cores} cores,
Node ${machine.node}, ${machine.date}, quern ${machine.commit}. Clients in a closed loop, ${settings.requests} requests each, ${settings.repeat} repetitions of both servers in turn, never both alive; load of the machine at most ${Math.max(...all.map(({ machineLoad }) => machineLoad))}.
${Object.entries(scenes).map(([name, { words }]) => `*${name}*: ${words}.`).join(' ')} Speeds are of all clients together, medians of the repetitions; times in ms, p50 / p95 / largest of all requests: to the first token, and between two.

| | clients | | requests/s | tokens/s | first token | gap |
| --- | --: | --- | --: | --: | --: | --: |
${rows.join('\n')}
`;
}
