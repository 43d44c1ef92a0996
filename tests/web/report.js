// SPDX-License-Identifier: MIT
// See report.html. The address's fragment is JSON: the address for reports, and the tasks: configurations to compare
// (library-page.js) with a model to ask, questions to ask at once, questions under limits, what to compute on a
// graphics device, and a model to load and dispose of repeatedly. Each task sends its own report.
import './library-page.js';

const { quern } = globalThis;

/** A model's greedy text with each size of addresses. */
async function textsOf(source) {
  const texts = [];
  for (const address of [32, 64]) {
    const model = await quern.load(source, { address, threads: 2 });
    const { text } = await model.chat('What is the capital of Kenya?', { temperature: 0 }).result;
    texts.push([model.info.address, text]);
    await model.dispose();
  }
  return texts;
}

async function answer({ comparison, chat }) {
  const support = quern.support();
  if (support.maxMemory <= 2 ** 32) return { support };
  const configurations = comparison.configurations.filter(({ variant }) => support.relaxed || variant !== 'relaxed');
  return { support, configurations, results: await quern.compare({ ...comparison, configurations }), texts: await textsOf(chat) };
}

/** What a model says on a device and on the processor: to a prompt, or of an image. */
async function sayBoth({ source, image, ...options }) {
  const said = [];
  for (const backend of ['webgpu', 'cpu']) {
    const model = await quern.load(source, { ...options, backend });
    const content = image && [{ type: 'image', image }, { type: 'text', text: 'Well?' }];
    const limits = { maxTokens: 12, temperature: 1, seed: 1 };
    const reply = image ? model.chat([{ role: 'user', content }], limits) : model.complete('one two', limits);
    const { text } = await reply.result;
    said.push({ backend: model.info.backend, text });
    await model.dispose();
  }
  return said;
}

async function onDevice({ comparisons, says }) {
  const compared = [];
  for (const comparison of comparisons) compared.push(...await quern.compare(comparison));
  const said = [];
  for (const say of says) said.push(await sayBoth(say));
  return { compared, said };
}

const request = JSON.parse(decodeURIComponent(location.hash.slice(1)));

async function report(work) {
  const found = await work.catch((error) => ({ problem: `${error.code ?? error.name}: ${error.message}` }));
  await fetch(request.report, { method: 'POST', mode: 'no-cors', body: JSON.stringify(found) });
}

if (request.comparison) await report(answer(request));
if (request.atOnce) await report(quern.atOnce(request.atOnce));
if (request.limited) await report(quern.limited(request.limited).then((said) => ({ said })));
if (request.device) await report(onDevice(request.device));
const { source, options, counts = [] } = request.disposals ?? {};
for (const count of counts) await report(quern.loadAndDispose(source, options, count));
