// SPDX-License-Identifier: MIT
// Compares replies under limits in a browser with those in Node: they must be equal, and obey the limits.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { load } from '../../dist/node.js';
import { PROJECT } from '../fixtures/golden.mjs';
import { LIMITED, limitedBy } from '../fixtures/limited.mjs';

/** @param {object[]} said from JSON, so `undefined` values are missing */
export async function checkLimited(said) {
  const model = await load(join(PROJECT, LIMITED.source), { threads: 1 });
  const expected = await limitedBy(model, LIMITED.asks);
  await model.dispose();
  const [object, word, call] = expected;
  assert.deepEqual(object.value, JSON.parse(object.text));
  assert.match(word.text, new RegExp(`^(?:${LIMITED.asks[1].options.regex})$`, 'u'));
  assert.deepEqual(Object.keys(call.calls[0].given), ['name', 'age', 'likes']);
  assert.deepEqual([object, word, call].map(({ finishReason }) => finishReason), ['stop', 'stop', 'tool-calls']);
  assert.deepEqual(said, JSON.parse(JSON.stringify(expected)));
}
