// SPDX-License-Identifier: MIT
// The server's metrics, in Prometheus' text format. Names and labels are fixed here, so no request can add a row.

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Name without `quern_` -> type and help text. */
const METRICS = {
  requests_total: ['counter', 'Requests by path and status.'],
  requests_running: ['gauge', 'Replies whose prompt is being read or that are being written.'],
  requests_waiting: ['gauge', 'Replies that wait for their turn.'],
  prompt_tokens_total: ['counter', 'Tokens of prompts.'],
  cached_tokens_total: ['counter', 'Tokens of prompts that were known and not computed again.'],
  completion_tokens_total: ['counter', 'Tokens written, thinking included.'],
  drafted_tokens_total: ['counter', 'Tokens that were drafted.'],
  accepted_tokens_total: ['counter', 'Drafted tokens that were right, and so took no step of their own.'],
  aborted_total: ['counter', 'Replies that were stopped, by phase.'],
  let_go_total: ['counter', 'How often a reply lost its pages because there were too few.'],
  recomputed_tokens_total: ['counter', 'Tokens computed again after a reply had lost its pages.'],
  clients_let_go_total: [
    'counter',
    'Connections that were ended because the client read too slowly (slow), or because unread answers filled the memory (full).',
  ],
  engine_restarts_total: ['counter', 'How often the model was loaded again because its engine had failed.'],
  queue_seconds: ['histogram', 'Time that a request waited for its place.'],
  wait_seconds: ['histogram', 'Time until a reply had its turn.'],
  ttft_seconds: ['histogram', 'Time until a reply began to be written.'],
  token_seconds: ['histogram', 'Time for each further token of a reply.'],
  request_seconds: ['histogram', 'Time of a whole request.'],
  step_rows: ['histogram', 'Rows of a step of the engine: tokens computed together, of all replies.'],
  memory_bytes: ['gauge', 'Memory of the engine.'],
  pages: ['gauge', 'Pages of keys and values, by state.'],
};

/** '' or '{name="value"}'. */
function labelText(labels) {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${String(value).replace(/[\\"\n]/g, '_')}"`);
  return pairs.length ? `{${pairs.join(',')}}` : '';
}

/**
 * @typedef {object} Histogram
 * @property {number[]} bounds
 * @property {number[]} counts for each bound, the values above the bound before and at most this one; then those above
 *   all
 * @property {number} sum of all values
 */

/** @param {Histogram} histogram */
function histogramLines(name, histogram) {
  const { bounds, counts, sum } = histogram;
  let below = 0;
  const buckets = [...bounds, '+Inf'].map((bound, i) => {
    below += counts[i];
    return `${name}_bucket{le="${bound}"} ${below}`;
  });
  return [...buckets, `${name}_sum ${sum}`, `${name}_count ${below}`];
}

const emptyTimes = () => ({ bounds: SECONDS, counts: new Array(SECONDS.length + 1).fill(0), sum: 0 });

export class Metrics {
  #counters = new Map();      // name -> labels as text -> number
  #histograms = new Map();

  count(name, by = 1, labels = {}) {
    const rows = this.#counters.get(name) ?? new Map();
    this.#counters.set(name, rows);
    const key = labelText(labels);
    rows.set(key, (rows.get(key) ?? 0) + by);
  }

  /** Counts a time, `times` times. */
  observe(name, seconds, times = 1) {
    const histogram = this.#histograms.get(name) ?? emptyTimes();
    this.#histograms.set(name, histogram);
    const at = SECONDS.findIndex((bound) => seconds <= bound);
    histogram.counts[at < 0 ? SECONDS.length : at] += times;
    histogram.sum += seconds * times;
  }

  /**
   * The metrics as text. A counter without rows is 0.
   * @param {[string, number, object?][]} current present values: name, value, labels
   * @param {Record<string, Histogram>} histograms counted elsewhere
   */
  text(current, histograms) {
    const lines = [];
    for (const [name, [type, help]] of Object.entries(METRICS)) {
      const full = `quern_${name}`;
      const rows =
        type === 'histogram'
          ? histogramLines(full, histograms[name] ?? this.#histograms.get(name) ?? emptyTimes())
          : this.#rows(name, type, current).map(([labels, value]) => `${full}${labels} ${value}`);
      if (rows.length) lines.push(`# HELP ${full} ${help}`, `# TYPE ${full} ${type}`, ...rows);
    }
    return `${lines.join('\n')}\n`;
  }

  #rows(name, type, current) {
    const now = current.filter(([of]) => of === name).map(([, value, labels = {}]) => [labelText(labels), value]);
    const rows = [...this.#counters.get(name) ?? [], ...now];
    return rows.length === 0 && type === 'counter' ? [['', 0]] : rows;
  }
}
