// SPDX-License-Identifier: MIT
// The paths that Ollama's clients use beside answers: list of models, details of a model, models in memory, version of
// the API. There is one model, and it is in memory.

import { createHash } from 'node:crypto';

/** The version of Ollama whose API this is; clients refuse older ones. */
const VERSION = '0.12.6';

/** The type of most of the weights. */
function typeOf({ types }) {
  const [first] = Object.entries(types ?? {}).toSorted(([, a], [, b]) => b.bytes - a.bytes);
  return first?.[0] ?? '';
}

/** Number of parameters in the style of model cards: 596M, 1.7B. */
const sizeOf = (parameters) =>
  parameters >= 1e9 ? `${(parameters / 1e9).toFixed(1)}B` : `${Math.round(parameters / 1e6)}M`;

function detailsOf(info) {
  const { architecture = '', format = 'gguf', parameters } = info;
  return {
    parent_model: '',
    format,
    family: architecture,
    families: [architecture],
    parameter_size: sizeOf(parameters),
    quantization_level: typeOf(info),
  };
}

function modelOf({ served, name, started }) {
  const { info, fingerprint } = served;
  const digest = createHash('sha256').update(`${name} ${fingerprint}`).digest('hex');
  return {
    name,
    model: name,
    modified_at: new Date(1000 * started).toISOString(),
    size: info.fileBytes,
    digest,
    details: detailsOf(info),
  };
}

function capabilitiesOf({ headless, thinking, vision }) {
  if (headless) return ['embedding'];
  return ['completion', 'tools', 'embedding', ...thinking ? ['thinking'] : [], ...vision ? ['vision'] : []];
}

/** Facts about the model, under GGUF's names. */
function metadataOf({ architecture: name, parameters, contextLength, dim, layers, heads, kvHeads, vocabSize }) {
  return {
    'general.architecture': name, 'general.parameter_count': parameters, [`${name}.context_length`]: contextLength,
    [`${name}.embedding_length`]: dim, [`${name}.block_count`]: layers, [`${name}.attention.head_count`]: heads,
    [`${name}.attention.head_count_kv`]: kvHeads, [`${name}.vocab_size`]: vocabSize,
  };
}

async function show(site) {
  const { info } = site.served;
  const { details, modified_at: modified } = modelOf(site);
  return {
    json: {
      license: info.license ?? '',
      modelfile: '',
      parameters: '',
      template: await site.template(),
      modified_at: modified,
      details,
      model_info: metadataOf(info),
      capabilities: capabilitiesOf(info),
    },
  };
}

/** The model is never unloaded. */
const NEVER = '9999-12-31T23:59:59Z';

const running = (site) => ({ json: { models: [
  { ...modelOf(site), expires_at: NEVER, size_vram: 0, context_length: site.served.info.contextSize }] } });

/** Routes by path and method. @param {(site: any, name: unknown) => void} checkName refuses an unknown model */
export const ollamaRoutes = (checkName) => ({
  '/api/version': { GET: ({ version }) => ({ json: { version: VERSION, quern: version } }) },
  '/api/tags': { GET: (site) => ({ json: { models: [modelOf(site)] } }) },
  '/api/ps': { GET: running },
  '/api/show': { POST: (site, body) => {
    checkName(site, body?.model ?? body?.name);
    return show(site);
  } },
});
