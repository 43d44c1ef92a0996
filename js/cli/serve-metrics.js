// SPDX-License-Identifier: MIT
// What a server counts, as Prometheus reads it. Names and labels are fixed here, so that no request can make a new row.

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Name, without `quern_`: its type and what it is. */
const METRICS = {
  requests_total: ['counter', 'Requests by path and status.'],
  requests_running: ['gauge', 'Replies whose prompt is being read or that are being written.'],
  requests_waiting: ['gauge', 'Replies that wait for their turn.'],
  prompt_tokens_total: ['counter', 'Tokens of prompts.'],
  cached_tokens_total: ['counter', 'Tokens of prompts that were known and not computed again.'],
  completion_tokens_total: ['counter', 'Tokens written, thinking included.'],
  aborted_total: ['counter', 'Replies that were stopped, by what they were doing.'],
  steps_total: ['counter', 'Steps of the engine.'],
  step_rows_total: ['counter', 'Rows that steps have computed: by steps_total, how many run together.'],
  let_go_total: ['counter', 'How often a reply let go of its pages because there were too few.'],
  recomputed_tokens_total: ['counter', 'Tokens computed again because of that.'],
  engine_restarts_total: ['counter', 'How often the model was loaded again because its engine had failed.'],
  wait_seconds: ['histogram', 'Time until a reply had its turn.'],
  ttft_seconds: ['histogram', 'Time until a reply began to be written.'],
  token_seconds: ['histogram', 'Time for each further token of a reply.'],
  request_seconds: ['histogram', 'Time of a whole request.'],
  memory_bytes: ['gauge', 'Memory of the engine.'],
  pages: ['gauge', 'Pages of keys and values, by what they are.'],
};

/** '' or '{name="value"}'. */
function labelText(labels) {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${String(value).replace(/[\\"\n]/g, '_')}"`);
  return pairs.length ? `{${pairs.join(',')}}` : '';
}

class Histogram {
  #counts = new Array(SECONDS.length).fill(0);
  #count = 0;
  #sum = 0;

  observe(seconds, times) {
    const at = SECONDS.findIndex((bound) => seconds <= bound);
    if (at >= 0) this.#counts[at] += times;
    this.#count += times;
    this.#sum += seconds * times;
  }

  lines(name) {
    let below = 0;
    const buckets = SECONDS.map((bound, i) => {
      below += this.#counts[i];
      return `${name}_bucket{le="${bound}"} ${below}`;
    });
    return [...buckets, `${name}_bucket{le="+Inf"} ${this.#count}`, `${name}_sum ${this.#sum}`, `${name}_count ${this.#count}`];
  }
}

export class Metrics {
  #counters = new Map();      // name -> labels as text -> number
  #histograms = new Map();

  count(name, by = 1, labels = {}) {
    const rows = this.#counters.get(name) ?? new Map();
    this.#counters.set(name, rows);
    const key = labelText(labels);
    rows.set(key, (rows.get(key) ?? 0) + by);
  }

  /** The same time for each of several. */
  observe(name, seconds, times = 1) {
    if (!this.#histograms.has(name)) this.#histograms.set(name, new Histogram());
    this.#histograms.get(name).observe(seconds, times);
  }

  /** Rows of a metric that has none are 0 where it is a counter. @param {[string, number, object?][]} current name, value, labels: what holds now */
  text(current) {
    const lines = [];
    for (const [name, [type, help]] of Object.entries(METRICS)) {
      const full = `quern_${name}`;
      const rows = type === 'histogram' ? (this.#histograms.get(name) ?? new Histogram()).lines(full)
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
