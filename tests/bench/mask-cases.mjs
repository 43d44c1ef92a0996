// SPDX-License-Identifier: MIT
// Schemas as programs ask for, each with an answer to it: what `npm run bench -- --only masks` measures. Answers are compact, as replies are.

const text = { type: 'string' };
const object = (properties, more = {}) => ({ type: 'object', properties, required: Object.keys(properties), additionalProperties: false, ...more });
const list = (items, more = {}) => ({ type: 'array', items, ...more });

/** @type {Record<string, {schema: object, value: any}>} */
export const CASES = {
  person: {
    schema: object({ name: text, age: { type: 'integer', minimum: 0, maximum: 150 }, email: { type: 'string', format: 'email' }, tags: list(text, { maxItems: 8 }) }),
    value: { name: 'Åsa Lindqvist', age: 47, email: 'asa.lindqvist@example.org', tags: ['reader', 'night owl', 'grinds her own flour'] },
  },
  weather: {
    schema: object({
      city: text, unit: { enum: ['celsius', 'fahrenheit'] }, temperature: { type: 'number', minimum: -90, maximum: 60 },
      sky: { enum: ['clear', 'cloudy', 'rain', 'snow'] }, hours: list(object({ at: { type: 'string', format: 'time' }, degrees: { type: 'number' } }), { maxItems: 24 }),
    }),
    value: { city: 'Reykjavík', unit: 'celsius', temperature: -3.5, sky: 'snow', hours: [{ at: '06:00:00Z', degrees: -4 }, { at: '12:00:00Z', degrees: -1.25 }] },
  },
  invoice: {
    schema: object({
      number: { type: 'string', pattern: '^INV-[0-9]{4}-[0-9]{6}$' }, date: { type: 'string', format: 'date' }, currency: { type: 'string', pattern: '^[A-Z]{3}$' },
      lines: list(object({ description: { type: 'string', minLength: 1, maxLength: 120 }, quantity: { type: 'integer', minimum: 1 }, price: { type: 'number', minimum: 0 } }), { minItems: 1, maxItems: 50 }),
      paid: { type: 'boolean' }, note: { type: ['string', 'null'] },
    }),
    value: {
      number: 'INV-2026-004711', date: '2026-11-24', currency: 'EUR', lines: [{ description: 'Stoneground rye flour, 25 kg', quantity: 4, price: 31.9 }, { description: 'Delivery', quantity: 1, price: 12 }],
      paid: false, note: 'Payable within 30 days; thank you for your order.',
    },
  },
  shape: {
    schema: {
      oneOf: [
        object({ kind: { const: 'circle' }, radius: { type: 'number', exclusiveMinimum: 0 } }), object({ kind: { const: 'square' }, side: { type: 'number' } }),
        object({ kind: { const: 'polygon' }, points: list(list({ type: 'number' }, { minItems: 2, maxItems: 2 }), { minItems: 3 }) }),
      ],
    },
    value: { kind: 'polygon', points: [[0, 0], [12.5, -3], [7, 19.25], [-4e2, 1]] },
  },
  tree: {
    schema: { $ref: '#/$defs/node', $defs: { node: object({ name: text, children: list({ $ref: '#/$defs/node' }) }) } },
    value: { name: 'root', children: [{ name: 'left', children: [] }, { name: 'right', children: [{ name: 'leaf of the right one', children: [] }] }] },
  },
  article: {
    schema: object({ title: { type: 'string', maxLength: 200 }, summary: { type: 'string', minLength: 20, maxLength: 1000 }, keywords: list({ type: 'string', maxLength: 40 }, { minItems: 1, maxItems: 12, uniqueItems: false }), url: { type: 'string', format: 'uri' } }),
    value: {
      title: 'How a hand mill works', summary: 'A quern is a pair of stones. Grain falls through the eye of the upper stone, which is turned by hand, and leaves as flour at the rim.',
      keywords: ['quern', 'milling', 'grain'], url: 'https://example.org/articles/quern?page=2',
    },
  },
  settings: {
    schema: {
      type: 'object', properties: { theme: { enum: ['light', 'dark', 'auto'] }, fontSize: { type: 'integer', minimum: 8, maximum: 72, multipleOf: 2 }, plugins: { type: 'object', additionalProperties: { type: 'boolean' } } },
      required: ['theme'], additionalProperties: { type: ['string', 'number'] },
    },
    value: { theme: 'dark', fontSize: 14, plugins: { spelling: true, 'word-count': false }, language: 'de-CH', zoom: 1.25 },
  },
  event: {
    schema: object({
      id: { type: 'string', format: 'uuid' }, start: { type: 'string', format: 'date-time' }, place: object({ name: text, latitude: { type: 'number', minimum: -90, maximum: 90 }, longitude: { type: 'number', minimum: -180, maximum: 180 } }),
      guests: list(object({ name: text, answer: { enum: ['yes', 'no', 'maybe'] } })), address: { type: 'string', format: 'ipv4' },
    }),
    value: {
      id: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff', start: '2026-11-24T18:30:00+01:00', place: { name: 'Mill house', latitude: 47.3769, longitude: 8.5417 },
      guests: [{ name: 'Ada', answer: 'yes' }, { name: 'Grace', answer: 'maybe' }], address: '192.168.1.20',
    },
  },
  query: {
    schema: object({ select: list({ type: 'string', pattern: '^[a-z_][a-z0-9_]*$' }, { minItems: 1 }), where: list(object({ field: { type: 'string', pattern: '^[a-z_]+(\\.[a-z_]+)*$' }, op: { enum: ['=', '<', '>', 'like'] }, value: { anyOf: [text, { type: 'number' }, { type: 'boolean' }] } })), limit: { type: 'integer', minimum: 1, maximum: 1000 } }),
    value: { select: ['name', 'created_at'], where: [{ field: 'user.city', op: 'like', value: 'Ber%' }, { field: 'age', op: '>', value: 30 }], limit: 100 },
  },
  anything: {
    schema: { type: 'object' },
    value: { a: [1, 2.5, -3e10, true, null], b: { c: 'Any \\ "text" with ünïcödé and 漢字', d: {} }, long: 'It is allowed to say whatever one likes in here, at some length.' },
  },
  classify: {
    schema: object({ label: { enum: ['positive', 'negative', 'neutral', 'mixed', 'unclear'] }, confidence: { type: 'number', minimum: 0, maximum: 1 }, reason: { type: 'string', maxLength: 300 } }),
    value: { label: 'mixed', confidence: 0.83, reason: 'The food is praised, while the service is called slow twice.' },
  },
  steps: {
    schema: object({ steps: list(object({ explanation: text, output: text }), { minItems: 1, maxItems: 20 }), answer: text }),
    value: { steps: [{ explanation: 'Subtract 7 from both sides.', output: '8x = -30' }, { explanation: 'Divide both sides by 8.', output: 'x = -3.75' }], answer: 'x = -3.75' },
  },
};

