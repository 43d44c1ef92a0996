// SPDX-License-Identifier: MIT
// The newest native llama.cpp, as Debian unstable packages it (tools/llama.sh), by its own llama-bench: what child.mjs is for an engine
// in Node. Each figure is a run of its own, after a warm-up of its own, and its timings leave sampling out.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from './fixtures.mjs';
import { processMemory } from './machine.mjs';

const FOLDER = join(PROJECT, 'build/bench/llama');
const [LOADER, LIBRARIES, PROGRAM, BATCHED] = ['lib/ld-linux-x86-64.so.2', 'lib', 'bin/llama-bench', 'bin/llama-batched-bench'].map((path) => join(FOLDER, path));

/** One of its programs, in the folder of the backends that it may choose from. */
const start = (program, backends, args) => spawn(LOADER, ['--library-path', LIBRARIES, program, ...args], { cwd: backends, stdio: ['ignore', 'pipe', 'pipe'] });

/** How another of its programs is started, with the best build for this processor. */
export const nativeCommand = (program, args) => (
  { command: LOADER, args: ['--library-path', LIBRARIES, join(FOLDER, 'bin', program), ...args], cwd: join(FOLDER, 'all') });

/** llama.cpp's builds for x86-64, by the instructions that decide their speed. */
const BUILDS = {
  'AVX-512': ['skylakex', 'cannonlake', 'cascadelake', 'icelake', 'cooperlake', 'zen4', 'sapphirerapids'],
  AVX2: ['haswell', 'alderlake'],
};

/** How often the memory of a run is looked at, in ms; its peak is the kernel's own. */
const WATCH_MS = 50;

let isThere;

/** Whether there is one: not everywhere, and not without a network. */
export function hasNative() {
  if (isThere === undefined) {
    try {
      execFileSync(join(PROJECT, 'tools/llama.sh'), [FOLDER], { stdio: ['ignore', 'ignore', 'inherit'] });
    } catch { /* it has said why; an older one serves too */ }
    isThere = existsSync(PROGRAM);
    if (!isThere) console.error('bench: npm\'s llama.cpp takes its place');
  }
  return isThere;
}

export const packagedVersion = () => /^version: (\S+)/m.exec(readFileSync(join(FOLDER, 'version'), 'utf8'))[1];
const nameOfBuild = (log) => /loaded CPU backend from .*ggml-cpu-(\w+)\./.exec(log)?.[1] ?? 'unknown';

/** Which build llama.cpp took, by its own log. */
export function describeBuild(log) {
  const name = nameOfBuild(log);
  const set = Object.keys(BUILDS).find((key) => BUILDS[key].includes(name));
  return set ? `${set}: ${name}` : name;
}

export class LlamaBench {
  #backends;
  #options;
  #running;
  #peak = 0;

  /** @param {'all' | 'avx2'} backends of which it takes the best */
  constructor(backends) {
    this.#backends = join(FOLDER, backends);
  }

  /** `load`, or `answer`. */
  call(name, options) {
    return this[name](options);
  }

  /** Chooses the model and how it is run. Every run reads it; this one does nothing else. */
  async load({ path, threads, flash }) {
    this.#options = ['-m', path, '-t', String(threads), '-fa', flash ? 'on' : 'off'];
    const { result, loadMs, log } = await this.#run(['-p', '1', '-n', '0', '--no-warmup']);
    const build = nameOfBuild(log);
    if (!existsSync(join(this.#backends, `libggml-cpu-${build}.so`))) throw new Error(`llama-bench took the system's backend ${build}: remove the package libggml0`);
    return { ms: loadMs, version: `${packagedVersion()} of Debian, ${describeBuild(log)}`, threads: result.n_threads };
  }

  /** What a prompt and its reply give, as far as it is wanted. @returns {Promise<{prefill?: number, decode?: number}>} tokens per second */
  async answer({ prompt, generate, figures }) {
    const wanted = Object.values(figures);
    const speed = async (...args) => (await this.#run(args.map(String))).result.avg_ts;
    return {
      prefill: wanted.includes('prefill') ? await speed('-p', prompt, '-n', 0) : undefined,
      decode: wanted.includes('decode') ? await speed('-p', 0, '-n', generate, '-d', prompt) : undefined,
    };
  }

  /** One test to its end: what it found, how long it read the model, what it logged. */
  async #run(args) {
    const child = start(PROGRAM, this.#backends, [...this.#options, ...args, '-r', '1', '-o', 'json', '--progress']);
    this.#running = child;
    const watch = setInterval(() => this.#watch(child.pid), WATCH_MS);
    const times = {};
    let [out, log] = ['', ''];
    child.stdout.on('data', (data) => { out += data; });
    child.stderr.on('data', (data) => {
      log += data;
      for (const step of ['starting', ' run']) if (log.includes(step)) times[step] ??= performance.now();
    });
    const [code, signal] = await once(child, 'close');
    clearInterval(watch);
    if (code !== 0) throw new Error(`llama-bench ended with ${signal ?? code}: ${log.trim().split('\n').at(-1)}`);
    return { result: JSON.parse(out)[0], loadMs: times[' run'] - times.starting, log };
  }

  #watch(pid) {
    try {
      this.#peak = Math.max(this.#peak, processMemory(pid).peak);
    } catch { /* it has ended */ }
  }

  /** The most bytes that a run took, the pages of the file among them. */
  async peak() {
    return this.#peak;
  }

  async close() {
    this.#running?.kill('SIGKILL');
  }
}

/** llama-batched-bench: lines of JSON by number of sequences, with what build it takes by itself, after a warm-up of its own. */
async function batchedBench({ path, threads, contextSize, flash }, ...counts) {
  const child = start(BATCHED, join(FOLDER, 'all'), ['-m', path, '-t', threads, '-c', contextSize, '-fa', flash ? 'on' : 'off', ...counts, '--output-format', 'jsonl'].map(String));
  let [out, log] = ['', ''];
  child.stdout.on('data', (data) => { out += data; });
  child.stderr.on('data', (data) => { log += data; });
  const [code, signal] = await once(child, 'close');
  if (code !== 0) throw new Error(`llama-batched-bench ended with ${signal ?? code}: ${log.trim().split('\n').at(-1)}`);
  const lines = out.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  if (lines.length === 0) throw new Error(`llama-batched-bench measured nothing: a context of ${contextSize} is too small for ${counts.join(' ')}`);      // it says nothing then
  return lines;
}

/**
 * Several sequences together, each with a prompt of its own, and so many with one prompt that is `shared.tokens` longer, of whose keys and values there
 * is one copy, as in quern (-kvu).
 * @returns {Promise<{version: string, speeds: Record<number | 'shared', number>}>} by number of sequences the tokens per second of all that are written
 */
export async function runBatches({ batches, shared, prompt, generate, ...settings }) {
  const lines = await batchedBench(settings, '-npp', prompt, '-ntg', generate, '-npl', batches.join());
  const [{ speed_tg: speed }] = await batchedBench(settings, '-npp', shared.tokens + prompt, '-ntg', generate, '-npl', shared.batch, '-pps', '-kvu');
  return { version: `${packagedVersion()} of Debian`, speeds: { ...Object.fromEntries(lines.map(({ pl, speed_tg: each }) => [pl, each])), shared: speed } };
}
