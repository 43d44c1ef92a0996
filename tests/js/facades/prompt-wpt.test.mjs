// SPDX-License-Identifier: MIT
// What the Web Platform Tests (ai/language-model, as of 2026) assert of the Prompt API, in our own words, over quern/prompt-api: groups are called as
// the files there. ELSEWHERE says which assertions are not made here, and why.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { load } from 'quern';
import { languageModel } from 'quern/prompt-api';
import { fakeModel } from 'quern/testing';
import { DEMO, collect } from '../support/helper.mjs';

/** By file: what cannot be asserted of a model of one's own in Node, or is asserted of another state of the specification. */
const ELSEWHERE = {
  'create-user-activation, create-transient-user-activation, create-sticky-user-activation': 'A browser asks for a gesture before it downloads its own model; here the page has loaded one.',
  'iframe, from-detached-iframe, context/destroyed': 'A class of JavaScript knows no documents, no permission policy and no detached frames.',
  'garbage-collection (prompt, streaming)': 'They call a collector of the browser\'s tests. Sessions are plain objects, which a pending promise holds.',
  'params: absent in windows; create: temperature and topK undefined': 'That holds for pages. Extensions have both, and so has quern, everywhere.',
  'create: only one of topK and temperature': 'Older than the explainer, which takes each alone.',
  'availability-available: a language that is none (`unk`) is unavailable': 'Nothing is refused because of its language: a model reads all.',
  'prompt-multimodal: a text that is no text is a SyntaxError': 'The file itself says that the specification wants a TypeError, which comes here.',
  'multimodal/audio': 'No model of quern hears: `expectedInputs` with audio is `unavailable`, which is asserted.',
  'multimodal/image, multimodal/video: elements, canvases, frames, SVG': 'Need a page: tests/web looks at each kind of them with a model that sees. Blobs and bytes are asserted here.',
  'tool-use: tools without execute, tool-call and tool-response content': 'An experiment of one browser; the specification has `execute`. What it says of names, descriptions and schemas is asserted.',
  'destroy: an AbortError (explainer)': 'The explainer and the test differ; as in the test and in browsers it is an InvalidStateError.',
};

const TEXT = 'Write a sentence, please.';
const USER = (content) => ({ role: 'user', content });
const SYSTEM = (content) => ({ role: 'system', content });
const SAID = (content) => ({ role: 'assistant', content });

/** The class over a model that answers at once. */
const classOf = (script = 'A reply.', info = {}) => languageModel(fakeModel(script, info));
const begin = (options, script, info) => classOf(script, info).create(options);
const named = (name) => (error) => error instanceof DOMException && error.name === name;
const textOf = async (stream) => (await collect(stream)).join('');

/** All of them fail so. */
async function allFail(promises, isRight) {
  for (const { status, reason } of await Promise.allSettled(promises)) assert.ok(status === 'rejected' && isRight(reason), `${status}: ${reason}`);
}

/** Ends right after the call, and by a signal that has ended: with its reason, whatever that is. */
async function aborts(call) {
  for (const why of [undefined, new Error('enough')]) {
    const controller = new AbortController();
    const pending = call(controller.signal);
    controller.abort(why);
    const isReason = (error) => error === controller.signal.reason && (why !== undefined || named('AbortError')(error));
    await assert.rejects(pending, isReason);
    await assert.rejects(async () => call(controller.signal), isReason);
  }
}

test('what is not asserted has a reason', () => {
  for (const [what, why] of Object.entries(ELSEWHERE)) assert.ok(what && why.length > 20);
});

describe('abort', () => {
  test('create', () => aborts((signal) => classOf().create({ signal })));

  for (const name of ['clone', 'prompt', 'append', 'measureContextUsage']) {
    test(name, async () => {
      const session = await begin();
      await aborts((signal) => (name === 'clone' ? session.clone({ signal }) : session[name](TEXT, { signal })));
      assert.equal(typeof await session.prompt(TEXT), 'string', 'the session goes on');
    });
  }

  test('promptStreaming; called with a signal that has ended it throws', async () => {
    const session = await begin();
    await aborts((signal) => session.promptStreaming(TEXT, { signal }).pipeTo(new WritableStream()));
    assert.throws(() => session.promptStreaming(TEXT, { signal: AbortSignal.abort() }), named('AbortError'));
    assert.ok(await textOf(session.promptStreaming(TEXT)));
  });
});

describe('append', () => {
  test('resolves to nothing and adds what was measured', async () => {
    const session = await begin();
    assert.equal(session.contextUsage, 0);
    const usage = await session.measureContextUsage(TEXT);
    assert.ok(usage > 0);
    assert.equal(await session.append(TEXT), undefined);
    assert.equal(session.contextUsage, usage);
  });

  test('more than the context is a QuotaExceededError with both sizes', async () => {
    const session = await begin({}, 'x', { contextSize: 40 });
    const long = `${TEXT} `.repeat(session.contextWindow);
    const usage = await session.measureContextUsage(long);
    for (const ask of [session.append(long), session.prompt(long)]) {
      await assert.rejects(ask, (error) => named('QuotaExceededError')(error) && error.requested === usage && error.quota === session.contextWindow);
    }
  });
});

describe('availability', () => {
  const VALID = ['unavailable', 'downloadable', 'downloading', 'available'];
  const LanguageModel = classOf();

  test('what makes sense has one of four answers', async () => {
    assert.equal(await LanguageModel.availability(), 'available');
    const languages = [{ type: 'text', languages: ['en', 'ja', 'ko'] }];
    for (const topK of [undefined, -2, 0, 1.5, 99]) for (const temperature of [undefined, -0.5, 1, 7]) {
      for (const expected of [undefined, [], [{ type: 'text' }], languages, [{ type: 'audio', languages: ['es'] }, { type: 'image', languages: ['fr'] }]]) {
        for (const initialPrompts of [undefined, [SYSTEM('a'), SYSTEM('b')]]) {
          assert.ok(VALID.includes(await LanguageModel.availability({ topK, temperature, expectedInputs: expected, expectedOutputs: expected, initialPrompts })));
        }
      }
    }
  });

  test('a tag that is none is a RangeError, a type that is none a TypeError', async () => {
    for (const ask of ['availability', 'create']) {
      await assert.rejects(LanguageModel[ask]({ expectedInputs: [{ type: 'text', languages: ['en-xyz-nonsense'] }] }), RangeError);
      await assert.rejects(LanguageModel[ask]({ expectedInputs: [{ type: 'smell' }] }), TypeError);
    }
    assert.ok(await LanguageModel.create({ expectedInputs: [{ type: 'text', languages: ['EN'] }] }));
  });

  test('what is unavailable cannot be made', async () => {
    for (const options of [{ expectedOutputs: [{ type: 'image' }] }, { expectedOutputs: [{ type: 'audio' }] }, { expectedInputs: [{ type: 'audio' }] }]) {
      assert.equal(await LanguageModel.availability(options), 'unavailable');
      await assert.rejects(LanguageModel.create(options), named('NotSupportedError'));
    }
  });
});

describe('sampling mode', () => {
  const MODES = ['most-predictable', 'predictable', 'slightly-predictable', 'balanced', 'slightly-creative', 'creative', 'most-creative'];

  test('each is taken, told and cloned; without one it is balanced', async () => {
    const LanguageModel = classOf();
    for (const samplingMode of MODES) {
      assert.equal(await LanguageModel.availability({ samplingMode }), 'available');
      const session = await LanguageModel.create({ samplingMode });
      assert.deepEqual([session.samplingMode, (await session.clone()).samplingMode], [samplingMode, samplingMode]);
    }
    assert.equal((await LanguageModel.create()).samplingMode, 'balanced');
    await assert.rejects(LanguageModel.create({ samplingMode: 'wild' }), TypeError);
  });

  test('numbers are instead of one', async () => {
    const LanguageModel = classOf();
    assert.equal((await LanguageModel.create({ temperature: 0.8, topK: 10 })).samplingMode, null);
    for (const numbers of [{ temperature: 0.8 }, { topK: 10 }, { temperature: 0.8, topK: 10 }]) {
      for (const ask of ['availability', 'create']) await assert.rejects(LanguageModel[ask]({ samplingMode: 'balanced', ...numbers }), TypeError);
    }
  });

  test('they reach the model', async () => {
    const model = fakeModel('x');
    for (const samplingMode of ['most-predictable', 'balanced', 'most-creative']) await (await languageModel(model).create({ samplingMode })).prompt(TEXT);
    assert.deepEqual(model.calls.map(({ options: { temperature } }) => temperature), [0, undefined, 1.3]);
  });
});

describe('params', () => {
  test('four numbers, by which options are limited', async () => {
    const LanguageModel = classOf();
    const params = await LanguageModel.params();
    for (const name of ['defaultTopK', 'maxTopK', 'defaultTemperature', 'maxTemperature']) assert.equal(typeof params[name], 'number');
    const { topK, temperature } = await LanguageModel.create({ topK: Infinity, temperature: Infinity });
    assert.deepEqual([topK, temperature], [params.maxTopK, params.maxTemperature]);
    assert.equal((await LanguageModel.create({ topK: 1.5, temperature: 0.5 })).topK, 1);
    for (const wrong of [{ temperature: -0.5 }, { topK: 0 }, { topK: -2 }, { topK: NaN }]) await assert.rejects(LanguageModel.create({ topK: 3, temperature: 1, ...wrong }), RangeError);
  });
});

describe('create', () => {
  test('has everything that a session has', async () => {
    const LanguageModel = classOf();
    const session = await LanguageModel.create();
    assert.ok(session instanceof LanguageModel && session instanceof EventTarget);
    for (const name of ['prompt', 'promptStreaming', 'append', 'measureContextUsage', 'clone', 'destroy']) assert.equal(typeof session[name], 'function', name);
    for (const name of ['contextUsage', 'contextWindow', 'inputUsage', 'inputQuota']) assert.equal(typeof session[name], 'number', name);
    assert.deepEqual([session.topK, session.temperature], [undefined, undefined]);
    for (const name of ['oncontextoverflow', 'onquotaoverflow']) assert.equal(typeof session[name], 'object', name);
  });

  test('the monitor hears of a download that rises from 0 to 1, and nothing after create()', async () => {
    const heard = [];
    let isMade = false;
    await begin({
      monitor(target) {
        target.ondownloadprogress = () => assert.ok(!isMade);
        target.addEventListener('downloadprogress', (event) => heard.push(event));
      },
    });
    isMade = true;
    assert.ok(heard.length >= 2 && heard[0].loaded === 0 && heard.at(-1).loaded === 1);
    for (const [i, { loaded, total, lengthComputable }] of heard.entries()) {
      assert.ok(lengthComputable && total === 1 && loaded <= 1 && loaded % (1 / 0x10000) === 0 && loaded > (heard[i - 1]?.loaded ?? -1));
    }
  });

  test('aborted at 0 and at 1 it rejects and tells no more', async () => {
    for (const at of [0, 1]) {
      const controller = new AbortController();
      const heard = [];
      let resolve;
      const promise = new Promise((done) => { resolve = done; });
      const monitor = (target) => target.addEventListener('downloadprogress', ({ loaded }) => {
        heard.push(loaded);
        if (loaded === at) resolve();
      });
      const making = begin({ monitor, signal: controller.signal });
      await promise;
      const why = new Error('enough');
      controller.abort(why);
      await assert.rejects(making, why);
      assert.equal(heard.at(-1), at);
    }
  });

  test('what the monitor throws is what it rejects with', async () => {
    const why = new Error('mine');
    const monitor = (target) => {
      target.addEventListener('downloadprogress', () => assert.fail('there is no download'));
      throw why;
    };
    await assert.rejects(begin({ monitor }), why);
  });

  test('initialPrompts: any, but what the system says comes first and once', async () => {
    const talk = [USER('hello'), SAID('hello')];
    for (const initialPrompts of [[], talk, [SYSTEM('be a robot'), ...talk]]) assert.ok(await begin({ initialPrompts }));
    for (const initialPrompts of [[...talk, SYSTEM('be a robot')], [SYSTEM('be a robot'), SYSTEM('be a cat'), ...talk]]) {
      await assert.rejects(begin({ initialPrompts }), TypeError);
    }
  });

  test('initialPrompts that are too large are a QuotaExceededError', async () => {
    const long = `${TEXT} `.repeat(40);
    const usage = await (await begin({}, 'x', { contextSize: 40 })).measureContextUsage(long);
    assert.ok(usage > 40);
    await assert.rejects(begin({ initialPrompts: [SYSTEM(long)] }, 'x', { contextSize: 40 }),
      (error) => named('QuotaExceededError')(error) && Math.abs(error.requested - usage) <= 5 && error.quota === 40);
  });
});

describe('clone', () => {
  test('has what its original has, and goes its own way', async () => {
    const session = await begin({ topK: 3, temperature: 0.6 });
    await session.prompt(TEXT);
    const twin = await session.clone();
    for (const name of ['contextWindow', 'contextUsage', 'inputQuota', 'inputUsage', 'topK', 'temperature', 'samplingMode']) assert.equal(twin[name], session[name], name);
    assert.equal(typeof await twin.prompt(TEXT), 'string');
    assert.ok(twin.contextUsage > session.contextUsage);
  });
});

describe('destroy', () => {
  test('ends what is under way and what comes later; figures stay readable', async () => {
    const session = await begin();
    const pending = session.prompt(TEXT);
    const piped = session.promptStreaming(TEXT).pipeTo(new WritableStream());
    const twin = session.clone();
    session.destroy();
    const later = [session.prompt(TEXT), session.append(TEXT), session.clone(), session.measureContextUsage(TEXT)];
    await allFail([pending, piped, twin, ...later], named('InvalidStateError'));
    for (const name of ['contextWindow', 'contextUsage']) assert.equal(typeof session[name], 'number');
    assert.deepEqual([session.temperature, session.topK], [undefined, undefined]);
  });

  test('the signal of create() does the same with its reason', async () => {
    const controller = new AbortController();
    const session = await begin({ signal: controller.signal });
    const pending = session.prompt(TEXT);
    const why = new Error('enough');
    controller.abort(why);
    await allFail([pending, session.prompt(TEXT), session.append(TEXT), session.clone()], (reason) => reason === why);
  });
});

describe('prompt', () => {
  test('a text; several at once, alike and not', async () => {
    const session = await begin();
    assert.equal(typeof await session.prompt(TEXT), 'string');
    for (const other of [TEXT, 'And now for something else.']) {
      for (const text of await Promise.all([session.prompt(TEXT), session.prompt(other)])) assert.equal(text, 'A reply.');
      for (const text of await Promise.all([TEXT, other].map((one) => textOf(session.promptStreaming(one))))) assert.equal(text, 'A reply.');
    }
    assert.ok(session.promptStreaming(TEXT) instanceof ReadableStream);
  });

  test('empty inputs and what becomes a text', async () => {
    for (const input of ['', [], null, undefined, {}, 7, [USER('')], [USER([])], [USER([{ type: 'text', value: '' }])]]) {
      const session = await begin();
      assert.equal(typeof await session.prompt(input), 'string', JSON.stringify(input));
      assert.equal(typeof await textOf(session.promptStreaming(input)), 'string');
      assert.equal(await session.append(input), undefined);
    }
    const model = fakeModel('x');
    const session = await languageModel(model).create();
    for (const input of [null, {}, [], [USER([])], new Set([USER('a')])]) await session.prompt(input);
    const asked = model.calls.at(-1).input.filter(({ role }) => role === 'user').map(({ content }) => content);
    assert.deepEqual(asked, ['null', '[object Object]', '', '', 'a']);
  });

  test('the system speaks first or not at all', async () => {
    for (const ask of ['prompt', 'append']) {
      const session = await begin();
      await assert.rejects(session[ask]([USER('a'), SYSTEM('b')]), TypeError);
      await assert.rejects(session[ask]([SYSTEM('a'), SYSTEM('b')]), TypeError);
      const earlier = session[ask](SYSTEM('what is no list is a text'));
      await assert.rejects(session[ask]([SYSTEM('b')]), TypeError);
      await earlier;
      await assert.rejects((await begin({ initialPrompts: [USER('a')] }))[ask]([SYSTEM('b')]), TypeError);
      await (await begin())[ask]([SYSTEM('a'), USER('b')]);
    }
  });

  test('what is made of text alone is not taken as an image, nor the other way round', async () => {
    const session = await begin({ expectedInputs: [{ type: 'image' }] }, 'A cat.', { vision: {} });
    const blob = new Blob([new Uint8Array(8)]);
    const look = (value, type = 'image') => [USER([{ type: 'text', value: 'What?' }, { type, value }])];
    await assert.rejects(session.prompt(look(blob, 'text')), TypeError);
    await assert.rejects(session.prompt([SAID([{ type: 'image', value: blob }])]), named('NotSupportedError'));
    await assert.rejects((await begin({}, 'x', { vision: {} })).prompt(look(blob)), named('NotSupportedError'));
    await assert.rejects(session.prompt(look('cat.png')), TypeError);
    const bytes = new Uint8Array(300);
    for (const value of [blob, bytes.buffer, bytes.subarray(256), new DataView(bytes.buffer)]) assert.equal(await session.prompt(look(value)), 'A cat.');
    await aborts((signal) => session.prompt(look(blob), { signal }));
    assert.equal(await session.prompt(TEXT), 'A cat.');
    const initialPrompts = look(blob);
    assert.ok(await begin({ expectedInputs: [{ type: 'image' }], initialPrompts }, 'x', { vision: {} }));
    await assert.rejects(begin({ initialPrompts }, 'x', { vision: {} }), named('NotSupportedError'));
  });
});

describe('context', () => {
  test('usage rises by what was asked and by the reply', async () => {
    const session = await begin();
    const asked = await session.measureContextUsage(TEXT);
    const said = await session.measureContextUsage(await session.prompt(TEXT));
    assert.ok(Math.abs(session.contextUsage - (asked + said)) <= 5);
  });

  test('initialPrompts count; any messages can be measured, whatever there is already', async () => {
    const initialPrompts = [SYSTEM('The word is banana.')];
    const session = await begin({ initialPrompts });
    assert.equal(session.contextUsage, await session.measureContextUsage(initialPrompts));
    const talk = [SYSTEM('foo'), USER('bar'), SAID('baz')];
    const usage = await (await begin({ initialPrompts: talk })).measureContextUsage(talk);
    assert.ok(usage > 0);
    await assert.rejects(session.measureContextUsage(TEXT, { omitResponseConstraintInput: true }), TypeError);
  });

  test('contextoverflow is told where the oldest turns go', async () => {
    const session = await begin({}, 'x', { contextSize: 60 });
    let isTold = false;
    session.addEventListener('contextoverflow', () => { isTold = true; });
    await session.append(`${TEXT} `.repeat(5));
    assert.ok(!isTold && session.contextUsage > 0);
    await session.prompt(`${TEXT} `.repeat(11));
    assert.ok(isTold);
  });
});

describe('tool use', () => {
  const tool = { name: 'look', description: 'Looks something up.', inputSchema: { type: 'object', properties: {} }, execute: () => 'It is blue.' };
  const make = (...tools) => begin({ tools, expectedInputs: [{ type: 'tool-response' }], expectedOutputs: [{ type: 'tool-call' }] });

  test('tools that are incomplete, or named twice, are TypeErrors', async () => {
    const object = { type: 'object' };
    for (const inputSchema of [null, undefined, 'x', {}, { properties: {} }, { type: 'string' }, { ...object, properties: 'x' }, { ...object, required: 'x' }]) {
      await assert.rejects(make({ ...tool, inputSchema }), TypeError, JSON.stringify(inputSchema));
    }
    for (const wrong of [{ name: '' }, { description: '' }, { execute: undefined }]) await assert.rejects(make({ ...tool, ...wrong }), TypeError);
    await assert.rejects(make(tool, tool), TypeError);
    const circle = { type: 'object', self: {} };
    circle.self = circle;
    await assert.rejects(make(tool, { ...tool, name: 'circle', inputSchema: circle }), TypeError);
  });

  test('what a schema throws is thrown', async () => {
    const why = new Error('mine');
    const thrower = () => { throw why; };
    for (const inputSchema of [{ type: 'object', toJSON: thrower }, { type: 'object', get more() { return thrower(); } }, new Proxy({ type: 'object' }, { get: (target, name) => (name === 'properties' ? thrower() : target[name]) })]) {
      await assert.rejects(make({ ...tool, inputSchema }), why);
    }
  });

  test('texts that look like broken JSON, no tools, and a clone with its tools', async () => {
    const properties = { a: { type: 'string', description: '{"a": 1,} // no' } };
    assert.ok(await make({ ...tool, inputSchema: { type: 'object', properties } }));
    assert.equal(await (await begin({ tools: [] })).prompt(TEXT), 'A reply.');
    assert.equal(await (await begin({ expectedOutputs: [{ type: 'tool-call' }] })).prompt(TEXT), 'A reply.');
    const call = { toolCalls: [{ id: 'c', name: 'look', arguments: {} }] };
    const twin = await (await begin({ tools: [tool] }, [call, 'Blue.'])).clone();
    assert.equal(await twin.prompt('What colour?'), 'Blue.');
    await assert.rejects(twin.prompt([USER([{ type: 'tool-response', value: {} }])]), named('NotSupportedError'));
  });
});

describe('response constraint', () => {
  /** @type {any} */
  let model;
  let session;
  before(async () => {
    model = await load(DEMO, { threads: 1, contextSize: 512 });
  });
  after(() => model.dispose());
  const RATING = { type: 'object', additionalProperties: false, required: ['Rating'], properties: { Rating: { type: 'number', minimum: 0, maximum: 5 } } };
  const ask = async (input, responseConstraint, more = {}) => {
    session = await languageModel(model).create({ samplingMode: 'most-predictable' });
    return session.prompt(input, { responseConstraint, ...more });
  };
  const isRating = (text) => {
    const { Rating, ...rest } = JSON.parse(text);
    assert.ok(Rating >= 0 && Rating <= 5 && Object.keys(rest).length === 0, text);
  };
  const begun = (content) => [USER('hello'), { ...SAID(content), prefix: true }];

  test('JSON of each type', async () => {
    isRating(await ask('How good was it?', RATING));
    isRating(await ask('How good was it?', RATING, { omitResponseConstraintInput: true }));
    const kinds = [
      [{ type: 'null' }, (value) => value === null], [{ type: 'boolean' }, (value) => typeof value === 'boolean'], [{ type: 'integer' }, Number.isInteger],
      [{ type: 'integer', minimum: 3, maximum: 9 }, (value) => value >= 3 && value <= 9], [{ type: 'string', maxLength: 20 }, (value) => typeof value === 'string'],
      [{ type: 'array', items: { type: 'integer' }, maxItems: 3 }, Array.isArray],
    ];
    for (const [schema, isRight] of kinds) assert.ok(isRight(JSON.parse(await ask('Say it.', schema))), JSON.stringify(schema));
  });

  test('expressions', async () => {
    const expressions = [
      /yes/, /^(true|false)$/, /^[a-c]{1,5}$/, /^\d{4}-\d\d-\d\d$/, /^\d{1,3}\.\d{2}$/, /^(Red|Green|Blue)$/, /^[A-Z]{3}$/, /^[+-]?\d{1,6}$/, /^.{0,25}$/, /^"[^"]{0,12}"$/,
      /^([01]\d|2[0-3]):[0-5]\d$/, /^\w{1,12}$/, /^[a-z]{1,8}@[a-z]{1,8}\.[a-z]{2,3}$/, /^https?:\/\/[^\s$.?#].[^\s]{0,12}$/, /^([^,\n]{1,6},){1,3}[^,\n]{1,6}$/, /^(\* .{0,8}\n?){1,3}$/,
      /^\s?"[a-z]{1,5}"\s?(?:,\s?"[a-z]{1,5}"\s?){0,2}$/,
    ];
    for (const expression of expressions) assert.match(await ask('Say it.', expression), expression);
  });

  test('a prefix counts as the beginning of what is judged', async () => {
    for (const prefix of ['{ "Rating": ', '{"Rating":', '{\n  "Rating": 4']) isRating(prefix + await ask(begun(prefix), RATING));
    const greeting = /^Greetings and good wishes\.{0,3}/;
    assert.match(`Greetings${await ask(begun('Greetings'), greeting)}`, greeting);
    for (const constraint of [RATING, greeting]) await assert.rejects(ask(begun('nothing like it'), constraint), named('NotSupportedError'));
    assert.equal(typeof await session.prompt(TEXT, { responseConstraint: /ok/ }), 'string', 'the session goes on');
  });

  test('what is no schema is a NotSupportedError', async () => {
    const circle = {};
    circle.self = circle;
    for (const constraint of [circle, { type: 'smell' }, { type: 'object', a: 1n }]) await assert.rejects(ask(TEXT, constraint), named('NotSupportedError'));
    await assert.rejects(ask(TEXT, 'a text'), TypeError);
  });
});
