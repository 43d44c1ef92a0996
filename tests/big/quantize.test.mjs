// SPDX-License-Identifier: MIT
// Files by `quern quantize` in other programs: native llama.cpp reads them and its probabilities are ours, from a GGUF file and from a
// Hugging Face folder, dense and with experts; wllama reads them and writes. And what it takes at Qwen3-0.6B's size.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { load } from '../../dist/node.js';
import { serve } from '../../tools/serve.mjs';
import { Child } from '../bench/child.mjs';
import { peerBest } from '../bench/peer.mjs';
import { Tab } from '../bench/tab.mjs';
import { bigModel } from '../bench/fixtures.mjs';
import { divergence } from '../fixtures/divergence.mjs';
import { shardedFolder } from '../fixtures/folder.mjs';
import { GOLDEN, PROJECT } from '../fixtures/golden.mjs';
import { TINY_MOE } from '../fixtures/tiny.mjs';
import { record } from './results.mjs';

const FOLDER = join(PROJECT, 'build/big-quantize');
const MODELS = { nano: `${GOLDEN}/nano.F32.gguf`, duo: `${GOLDEN}/duo.F32.gguf`, experts: `${GOLDEN}/moe-nano.F32.gguf`, folder: 'tests/fixtures/hf/f32', halves: 'tests/fixtures/hf/bf16', single: 'build/big-quantize/single' };
const TYPES = ['q8_0', 'q4_0', 'q4_k', 'q6_k'];
const IDS = Array.from({ length: 48 }, (_, i) => (i * 37 + 11) % 256);

/** Both multiply in 8 bits, in blocks of their own: by MODEL.md up to 7.0e-4 (llama.cpp) and 3.8e-4 from the exact logits, and square roots of KL add up. */
const NEAR = (Math.sqrt(7.02e-4) + Math.sqrt(3.78e-4)) ** 2;

/** Prints the most memory that the process held, in KiB. */
const PEAK = "data:text/javascript,process.on('exit', () => console.log(process.resourceUsage().maxRSS))";

/** Of which Node itself takes 41 million. */
const MAX_PEAK_BYTES = 160e6;

/** @returns {number} the most memory that it took */
function convert(from, to, type) {
  return 1024 * Number(execFileSync(process.execPath, ['--import', PEAK, join(PROJECT, 'dist/cli.js'), 'quantize', from, to, '--type', type, '--threads', '2'], { encoding: 'utf8' }));
}

function quantize(model, type) {
  const out = join(FOLDER, `${model}.${type}.gguf`);
  convert(join(PROJECT, MODELS[model]), out, type);
  return out;
}

/** A folder with experts one by one, in two files; in all layers, as llama.cpp has it. */
function writeSingle() {
  const names = ['config.json', 'generation_config.json', 'tokenizer.json', 'model.safetensors.index.json', 'model-1.safetensors', 'model-2.safetensors'];
  mkdirSync(join(PROJECT, MODELS.single));
  for (const [i, bytes] of shardedFolder({ spec: { ...TINY_MOE, dense: [], hidden: 64, headDim: 32, expertFfn: 256 } }).entries()) writeFileSync(join(PROJECT, MODELS.single, names[i]), bytes);
}

function atRealSize(type) {
  const from = join(PROJECT, bigModel('f16'));
  const to = join(FOLDER, `big.${type}.gguf`);
  const start = performance.now();
  const peak = convert(from, to, type);
  const figures = { type, ms: performance.now() - start, peak, from: statSync(from).size, to: statSync(to).size };
  rmSync(to);
  return figures;
}

async function ourLogits(path) {
  const model = await load(path, { threads: 2, kv: 'f32', store: false });
  try {
    return { logits: await model.logits(IDS), width: model.info.vocabSize };
  } finally {
    await model.dispose();
  }
}

describe('files that quern quantized', () => {
  let server;
  let browser = 'no browser';
  before(async () => {
    rmSync(FOLDER, { recursive: true, force: true });
    mkdirSync(FOLDER, { recursive: true });
    writeSingle();
    server = await serve({ root: PROJECT, csp: false });
  });
  after(() => server.close());

  for (const model of Object.keys(MODELS)) {
    test(`${model}: llama.cpp's probabilities are ours`, async (t) => {
      for (const type of TYPES) {
        const path = quantize(model, type);
        const { logits, width } = await ourLogits(path);
        const child = await Child.open('tests/big/llama-logits.mjs');
        try {
          const theirs = Float32Array.from(await child.call('logProbabilities', { peer: peerBest(), path, ids: IDS }));
          const distance = divergence(theirs, logits, width);
          t.diagnostic(`${type}: KL ${distance.toExponential(2)}`);
          assert.ok(distance < NEAR, `${type}: ${distance}`);
        } finally {
          await child.close();
        }
      }
    });
  }

  test('wllama reads them and writes', async () => {
    for (const [model, type] of [['duo', 'q4_k'], ['folder', 'q4_0'], ['experts', 'q6_k']]) {
      quantize(model, type);
      const tab = await Tab.open(server.url, 'tests/bench/page/wllama.js');
      try {
        await tab.call('load', { url: `${server.url}build/big-quantize/${model}.${type}.gguf`, threads: 1, contextSize: 64 });
        browser = tab.version;
        const { tokens } = await tab.call('complete', { prompt: 'the', generate: 8, token: 65 });
        assert.equal(tokens, 8, `${model}, ${type}`);
      } finally {
        await tab.close();
      }
    }
  });

  test('Qwen3-0.6B from F16', () => {
    const figures = TYPES.map(atRealSize);
    record('quantize', figures, browser);
    for (const { type, peak } of figures) assert.ok(peak < MAX_PEAK_BYTES, `${type}: ${peak}`);
  });
});
