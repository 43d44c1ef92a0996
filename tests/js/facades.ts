// SPDX-License-Identifier: MIT
// What the facade of the OpenAI API takes, and what it must refuse: else the check of its types in types.test.mjs would be none.
import type { Model, Reply } from '../../js/index.d.ts';
import type { RemoteModel } from '../../js/remote.d.ts';
import { chatCompletion, errorOf, textCompletion } from '../../js/facades/openai.js';
import { remote } from '../../js/facades/remote.js';

declare const model: Model;
declare const far: RemoteModel;
const identity = { name: 'x', fingerprint: 'y' };

chatCompletion(model, JSON.parse('{}'), identity).accepted satisfies Promise<void>;
chatCompletion(far, {}, identity).whole() satisfies Promise<object>;
textCompletion(model, {}, identity).chunks() satisfies AsyncIterable<object>;
errorOf(new Error('x')).status satisfies number;
export const made: Promise<Pick<RemoteModel, 'chat' | 'complete' | 'info' | 'dispose'>> = remote('x');
export const reply: Reply = far.chat('x');

// @ts-expect-error
chatCompletion({}, {}, identity);
// @ts-expect-error
chatCompletion(model, {}, { name: 'x' });
// @ts-expect-error
textCompletion({ complete: model.complete }, {}, identity);
// @ts-expect-error
errorOf(new Error('x')).retry satisfies string;
