// SPDX-License-Identifier: MIT
// Hints: what people can do about a failure. Only the page has these sentences, since the worker's errors get theirs
// there.

import { HOST, inNode } from './host.js';

/** What else uses memory here. */
const OTHERS = inNode ? 'programs' : 'tabs';

/** Hints for HTTP errors, by status. */
const STATUS = {
  401: "Pass headers: { Authorization: 'Bearer …' } of an account with access to the file.",
  404: 'Check the address.',
  429: 'Try again later.',
};
const ALIKE = { 403: 401, 410: 404, 500: 429, 502: 429, 503: 429, 504: 429 };

/** Hints by code. The message tells what happened, so the hint does not repeat it. */
export const HINTS = {
  'model/format': 'Choose a GGUF model file, or download it again.',
  'model/unsupported': 'Choose a Qwen3, Qwen3.5, Qwen2.5 or Llama 3 model in a GGUF file with one of the supported weight types.',
  'model/inconsistent': 'The file is damaged or was converted wrongly; choose another one.',
  'model/nonfinite': 'Download the file again or choose another one.',
  'net/offline': 'Connect to the network and try again. If the model was stored here, it has been deleted.',
  'net/http': 'Check the address and whether the file may be downloaded without signing in.',
  'net/unreachable': `Check the address and the connection.${inNode ? '' : ' CORS or a content blocker may be in the way.'}`,
  'net/truncated': 'Try again.',
  'net/stalled': 'Check the connection and try again.',
  'net/changed': 'Load the model again, from the start.',
  'net/range': 'Download the file and choose it from the disk.',
  'model/integrity': 'Load the model again. Check the hash, if you gave one.',
  'storage/quota': 'Remove models that are not needed, or free some space.',
  'storage/unavailable': inNode ? 'Give another folder for models; without one they are downloaded anew each time.'
    : 'Without storage (a private window) models are downloaded anew each time.',
  'storage/busy': `Close the other ${OTHERS} that use the model, or wait until they are done.`,
  'storage/corrupt': 'Connect to the network and load the model again.',
  'mem/plan': 'Use a smaller model or a smaller contextSize.',
  'mem/load': `Use a smaller model or a smaller contextSize, or close other ${OTHERS}.`,
  'mem/kv': 'Use a smaller contextSize or start a new conversation.',
  'env/gpu': "Load without backend: 'webgpu'.",
  'gpu/lost': 'Load the model again.',
  'env/simd': `Use a current version of ${inNode ? 'Node' : 'Chrome, Edge, Firefox or Safari'}.`,
  'env/csp':
    "The page's Content-Security-Policy must allow script-src 'wasm-unsafe-eval', worker-src for the package's files (and blob: where " +
    "they come from another origin), connect-src for the model's host and those that it redirects to, and of trusted-types the name quern.",
  'env/worker': inNode
    ? "Leave quern out of the bundle (Next.js: serverExternalPackages: ['quern'], esbuild: --external:quern), or copy " +
      'the files of node_modules/quern/dist beside it.'
    : 'Serve worker.js, aside.js, thread.js, template.js and the quern-* files beside each other, or pass workerUrl.',
  'env/version': inNode
    ? 'Use all files of the package from one version.'
    : 'Reload the page; serve all files of the package from one version.',
  'env/canvas': 'Allow this site to read its canvases, use another browser, or pass pixels (data, width, height).',
  'engine/trap': 'Load the model again. If it happens again, please report it.',
  'engine/hung': 'Load the model again. If it happens again, please report it.',
  'engine/lost': `Load the model again; the ${HOST} may have ended it to save memory.`,
  'engine/disposed': 'Load the model again.',
  'image/decode': inNode
    ? 'Choose a PNG or JPEG file, or install sharp (npm install sharp), which reads others too; or pass pixels ' +
      '(data, width, height).'
    : 'Choose another image.',
  'image/size': 'Make the image smaller, crop it, or use fewer.',
  'use/busy': 'Try again when a reply has ended.',
  'use/schema': 'Leave out what the message names, or rewrite it.',
  'use/context': 'Shorten the conversation, or load with a larger contextSize.',
};

/** @param {string} code @param {{status?: number}} detail */
export const hintOf = (code, { status } = {}) =>
  (code === 'net/http' && STATUS[ALIKE[status] ?? status]) || HINTS[code] || '';
