// SPDX-License-Identifier: MIT
// The browser's store does what every store must (tests/js/store/store-spec.mjs).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROJECT, station } from './browser.mjs';

const here = station({ root: PROJECT, csp: false });

test('the origin private file system is a store', async () => {
  const visit = await here.open('tests/web/library.html');
  const { checked, failures } = await visit.page.evaluate(() => new Promise((done, fail) => {
    const worker = new Worker('./store-spec-worker.js', { type: 'module' });
    worker.onmessage = ({ data }) => done(data);
    worker.onerror = ({ message }) => fail(new Error(message || 'the worker does not start'));
  }));
  assert.deepEqual(failures, []);
  assert.ok(checked >= 10);
  await visit.close();
});
