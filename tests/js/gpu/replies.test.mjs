// SPDX-License-Identifier: MIT
// Replies side by side, a beginning that is used again, and saved conversations on a device are those of the processor.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withDevice } from './place.mjs';

for (const name of ['nano.Q8_0', 'moe-nano.Q4_K_M', 'hybq.Q4_K_M'])
  test(`replies and saved conversations on a device: ${name}`, async () => {
    const [{ said: processor }, { onDevice, drafts, said: device }] = await withDevice('replies.mjs', [name]);
    assert.ok(onDevice && processor.conversation.length >= 3);
    assert.ok(processor.again.usage.cachedTokens > 0 && processor.later.usage.cachedTokens >= 50);
    assert.ok(processor.answers.every((answer) => answer === 'next'));
    assert.deepEqual(device, processor);
    const [drafted, right] = drafts.at(-1);
    assert.ok(name === 'nano.Q8_0' ? drafted >= right && right > 0 : right <= drafted, `${drafts}`);
  });
