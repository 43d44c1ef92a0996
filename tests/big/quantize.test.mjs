// SPDX-License-Identifier: MIT
// Files by `quern quantize` in other programs: native llama.cpp reads them and its probabilities are ours, from a GGUF file and from a
// Hugging Face folder, dense and with experts; wllama reads them and writes.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { load } from '../../dist/node.js';
import { serve } from '../../tools/serve.mjs';
import { Child } from '../bench/child.mjs';
import { peerBest } from '../bench/peer.mjs';
import { Tab } from '../bench/tab.mjs';
import { divergence } from '../fixtures/divergence.mjs';
import { GOLDEN, PROJECT } from '../fixtures/golden.mjs';

const FOLDER = join(PROJECT, 'build/big-quantize');
const MODELS = { nano: `${GOLDEN}/nano.F32.gguf`, duo: `${GOLDEN}/duo.F32.gguf`, experts: `${GOLDEN}/moe-nano.F32.gguf`, folder: 'tests/fixtures/hf/f32', halves: 'tests/fixtures/hf/bf16' };
const TYPES = ['q8_0', 'q4_0', 'q4_k', 'q6_k'];
const IDS = Array.from({ length: 48 }, (_, i) => (i * 37 + 11) % 256);

/** Both multiply in 8 bits, in blocks of their own: by MODEL.md up to 7.0e-4 (llama.cpp) and 3.8e-4 from the exact logits, and square roots of KL add up. */
const NEAR = (Math.sqrt(7.02e-4) + Math.sqrt(3.78e-4)) ** 2;

function quantize(model, type) {
  const out = join(FOLDER, `${model}.${type}.gguf`);
  execFileSync(process.execPath, [join(PROJECT, 'dist/cli.js'), 'quantize', join(PROJECT, MODELS[model]), out, '--type', type]);
  return out;
}

async function ourLogits(path) {
  const model = await load(path, { threads: 2, kv: 'f32', cache: false });
  try {
    return { logits: await model.logits(IDS), width: model.info.vocabSize };
  } finally {
    await model.dispose();
  }
}

describe('files that quern quantized', () => {
  let server;
  before(async () => {
    rmSync(FOLDER, { recursive: true, force: true });
    mkdirSync(FOLDER, { recursive: true });
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
        const { tokens } = await tab.call('complete', { prompt: 'the', generate: 8, token: 65 });
        assert.equal(tokens, 8, `${model}, ${type}`);
      } finally {
        await tab.close();
      }
    }
  });
});
