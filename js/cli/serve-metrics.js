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

  /** @param {[string, number, object?][]} gauges name, value, labels: what holds now */
  text(gauges) {
    const lines = [];
    for (const [name, [type, help]] of Object.entries(METRICS)) {
      const full = `quern_${name}`;
      const rows = type === 'histogram' ? (this.#histograms.get(name) ?? new Histogram()).lines(full)
        : type === 'counter' ? [...this.#counters.get(name) ?? [['', 0]]].map(([labels, value]) => `${full}${labels} ${value}`)
          : gauges.filter(([of]) => of === name).map(([, value, labels = {}]) => `${full}${labelText(labels)} ${value}`);
      if (rows.length) lines.push(`# HELP ${full} ${help}`, `# TYPE ${full} ${type}`, ...rows);
    }
    return `${lines.join('\n')}\n`;
  }
}
