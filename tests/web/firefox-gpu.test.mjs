// SPDX-License-Identifier: MIT
// A graphics device in Firefox, whose WebGPU is another program than Chromium's and has another compiler of shaders. The
// device is lavapipe of Debian's Mesa, because Firefox has none of its own; elsewhere it is the machine's.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { GOLDEN, ON_DEVICES, PROJECT, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { lavapipe } from '../fixtures/mesa.mjs';
import { openFirefox, openMailbox } from './undriven.mjs';

/** Shaders are compiled at their first use, and in software that takes seconds for each. */
const PATIENCE_MS = 600_000;

const PREFERENCES = {
  'dom.webgpu.enabled': true, 'dom.webgpu.workers.enabled': true, 'gfx.webgpu.ignore-blocklist': true, 'gfx.webrender.software': true,
};

/** Inside its sandbox the process that draws may not load a driver that computes with the processor. */
const environment = () => ({ MOZ_DISABLE_GPU_SANDBOX: '1', MOZ_DISABLE_CONTENT_SANDBOX: '1', ...lavapipe() });

/** Chunks of both kinds of products: those that tiles multiply, and those of few rows, of some models. */
const MANY = 48;
const FEW = 3;
const WITH_FEW = ['nano.Q4_K_M', 'moe-nano.Q4_K_M', 'hybq.Q4_K_M'];

const chunksOf = (name) => (WITH_FEW.includes(name) ? [MANY, FEW] : [MANY]);

const comparisonOf = (given) => {
  const [name, kv = 'f16'] = given.split(':');
  const configurations = chunksOf(given).map((chunk) => ({ backend: 'webgpu', kv, chunk }));
  return { source: `/${GOLDEN}/${name}.gguf`, expected: `/${nativeLogits(name, kv)}`, tokens, configurations };
};

const PAIR = '/tests/fixtures/vision/models/dense/f16';

test('a device in Firefox: the native bits, a reply, and a reply about an image', { timeout: PATIENCE_MS }, async (t) => {
  const site = await serve({ root: PROJECT, csp: false });
  t.after(() => site.close());
  const { next, url: report } = await openMailbox(t);
  const says = [
    { source: `/${GOLDEN}/nano.Q8_0.gguf` },
    { source: `${PAIR}/model.gguf`, vision: `${PAIR}/mmproj.gguf`, image: '/tests/fixtures/vision/images/exact.png' },
  ];
  const request = { report, device: { comparisons: ON_DEVICES.map(comparisonOf), says } };
  await openFirefox(t, `${site.url}tests/web/report.html#${encodeURIComponent(JSON.stringify(request))}`, { preferences: PREFERENCES, env: environment() });
  const { problem, compared, said, read } = await next();
  read();
  assert.equal(problem, undefined);
  const wanted = ON_DEVICES.flatMap((name) => chunksOf(name).map((chunk) => ({ name, chunk, variant: 'webgpu', length: true, first: -1 })));
  const found = compared.map(({ ran: { variant, chunk }, length, first }, i) => ({ name: wanted[i].name, chunk, variant, length, first }));
  assert.deepEqual(found, wanted);
  for (const [device, processor] of said) {
    assert.deepEqual([device.backend, processor.backend], ['webgpu', 'cpu']);
    assert.equal(device.text, processor.text);
    assert.ok(device.text.length > 0);
  }
  assert.equal(said.length, says.length);
});
