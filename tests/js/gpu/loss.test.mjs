// SPDX-License-Identifier: MIT
// A model goes on on the processor when its device is lost: what it says, its probabilities, events and counts are those of one that never left the
// processor. A device is lost between two submits of a prompt or of a reply, or while an image is encoded. When requests leave meanwhile in other ways:
// tests/js/page/device-load.test.mjs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONG } from '../../fixtures/lengths.mjs';
import { withDevice } from './place.mjs';

for (const [what, places] of [['several', LONG ? [2, 5, 13, 21, 29] : [13]], ['image', LONG ? [1, 2, 3, 5, 7] : [2]]])
  test(`a device is lost: ${what}`, async () => {
    const [{ said }, ...others] = await withDevice('loss.mjs', [what, '0', ...places.map(String)]);
    assert.equal(others.length, places.length);
    for (const other of others) assert.deepEqual(other, { said, backend: 'cpu', isLost: true });
  });

test('a device is lost, and others leave or its file is gone', async () => {
  const [{ said }] = await withDevice('loss.mjs', ['leaving', '7']);
  const [abort, stop, ...others] = said;
  assert.match(stop, /^stop: (aborted|stop)$/);    // so small a model may be at its end before it is told
  assert.deepEqual([abort, ...others], ['abort: AbortError', 'dispose: engine/disposed', 'remove: gpu/lost']);
});
