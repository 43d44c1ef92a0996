// SPDX-License-Identifier: MIT
// Names in other programs for options and fields of messages and tools here. A part of foreign.js, which is fetched
// when a name was refused. Names are compared without underscores, hyphens and case, so only names that differ
// otherwise are listed.

/**
 * Other programs' names for each of ours, as far as the call has it: from OpenAI, transformers and transformers.js,
 * llama.cpp, Ollama, the AI SDK, web-llm and wllama.
 */
export const SYNONYMS = {
  maxTokens:
    'maxnewtokens maxcompletiontokens maxoutputtokens maxlength maxgenlen npredict numpredict nmaxtokens tokenlimit maxtokenstosample',
  stop: 'stopsequences stopstrings stopwords stoptokens stops antiprompt reverseprompt',
  repeatPenalty: 'repetitionpenalty penaltyrepeat',
  presencePenalty: 'penaltypresent',
  frequencyPenalty: 'penaltyfreq penaltyfrequency',
  temperature: 'temp dosample',
  seed: 'randomseed rngseed',
  logprobs: 'toplogprobs nprobs numlogprobs',
  schema: 'responseformat jsonschema format responseconstraint guidedjson structuredoutputs output outputschema',
  regex: 'guidedregex pattern',
  grammar: 'guidedgrammar gbnf',
  choices: 'guidedchoice enum',
  json: 'jsonmode',
  thinking: 'enablethinking think reasoning reasoningeffort thinkingbudget chattemplatekwargs',
  tools: 'functions toolset',
  toolChoice: 'functioncall toolconfig',
  signal: 'abortsignal abortcontroller canceltoken',
  priority: 'requestpriority',
  saveMaxBytes: 'keepbytes savebytes keepmaxbytes',
  save: 'keep sessionid conversationid promptcachekey cachekey',
  cacheScope: 'user cachesalt space',
  onPrefill: 'onprogress progresscallback promptprogress returnprogress',
  generationPrompt: 'addgenerationprompt',
  contextSize:
    'nctx numctx ctxsize contextlength contextwindow contextwindowsize maxmodellen maxseqlen maxcontext nctxtrain',
  parallel: 'nparallel nseqmax numparallel maxnumseqs concurrency slots',
  kvPositions: 'kvcachesize kvsize cachesize',
  store: 'cache usecache cachedir usebrowsercache allowoffline cachemanager modelcache',
  threads: 'nthreads numthread numthreads nthread maxthreads threadcount',
  chunk: 'nbatch batchsize nubatch ubatch numbatch prefillchunksize maxnumbatchedtokens',
  kv: 'cachetypek cachetypev typek typev kvcachedtype kvcachetype',
  quantize: 'dtype quantization loadin8bit loadin4bit torchdtype',
  onProgress: 'progresscallback initprogresscallback ondownloadprogress progress downloadprogress onprefill',
  headers: 'requestheaders fetchheaders',
  vision: 'mmproj projector clip mmprojpath',
  memoryLimit: 'maxmemory memlimit',
  workerUrl: 'workerpath',
  wasmUrl: 'wasmpath wasmpaths pathconfig',
  dimensions: 'outputdimensionality truncatedim',
  normalize: 'normalise embdnormalize',
  instruction: 'prompt task prefix promptname',
  sha256: 'hash checksum integrity',
  parameters: 'inputschema argsschema schema jsonschema',
};

/** Names without a single counterpart here, by the advice that they get. */
const SENTENCES = {
  "pass it as a message, { role: 'system', content }":
    'system systemprompt systemmessage systeminstruction instructions',
  'messages are the first argument': 'messages',
  'the prompt is the first argument': 'prompt',
  'a model is loaded already': 'model modelname',
  'the source is the first argument': 'modelid modelurl modelpath repo url',
  'put it into the source, { repo, file, revision }': 'revision file filename hffile',
  'every reply is an async iterable: for await (const text of model.chat(…))':
    'stream streaming streamer streamoptions',
  'make one call for each reply; calls run side by side': 'n numreturnsequences bestof',
  'there is no beam search': 'numbeams beamsize',
  'there are topP, topK and minP': 'mirostat mirostattau mirostateta typicalp tfsz topa',
  'there is no minimum length': 'minlength minnewtokens mintokens',
  'forbid the model\'s end tokens by logitBias': 'ignoreeos',
  'pass it in headers, { Authorization: \'Bearer …\' }': 'token hftoken accesstoken apikey authorization',
  'models run on the processor here': 'device ngpulayers numgpu gpulayers usegpu usewebgpu maingpu',
  'a model stays until dispose()': 'keepalive',
  'prompts are always cached': 'cacheprompt',
  'this cannot be chosen here': 'usemmap usemlock nthreadsbatch numa loglevel verbose logger',
  'it comes from the model\'s files': 'poolingtype pooling ropefreqbase ropefreqscale ropescaling',
  'every model has embed()': 'embeddings embedding',
  'images are parts of the content, { type: \'image\', image }':
    'images image imageurl inputimage attachment attachments experimentalattachments file files media',
  'videos are parts of the content, { type: \'video\', video }': 'videos video inputvideo',
  'there is no audio here': 'audio audios inputaudio',
  'put the name into the content': 'name',
  'its text is the content': 'text',
  'its parts are the content, { type: \'text\', text } each': 'parts',
  'pass options.continue': 'prefix partial',
  'pass the id of the call as toolCallId': 'toolname',
  'calls are toolCalls, and each result is a message, { role: \'tool\', toolCallId, content }':
    'toolinvocations toolcall toolresult toolresults toolresponse toolresponses functioncall',
  'put it into the content': 'documents refusal annotations',
  'a tool is { name, description, parameters }, without another object around it': 'type function',
  'arguments always follow their schema': 'strict',
};

const plain = (name) => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/** Edit distance: insertions, deletions, changes, and swaps of neighbours. */
function distance(a, b) {
  let [before, last] = [[], Array.from({ length: b.length + 1 }, (_, i) => i)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    [before, last] = [last, row];
  }
  return last[b.length];
}

/** The nearest known name, if the difference may be a typing error. */
function nearest(name, known) {
  const far = (one) => distance(name, plain(one));
  const best = [...known].sort((a, b) => far(a) - far(b))[0];
  return best !== undefined && far(best) <= Math.max(1, Math.floor(name.length / 4)) ? best : undefined;
}

/**
 * Finds the right name for one that does not exist here.
 * @param {string} param as the caller wrote it: `options.max_tokens`
 * @param {string[]} known names that exist in its place
 * @returns {string} advice; '' if none is known
 */
export function oursFor(param, known) {
  const name = plain(param.split('.').at(-1));
  const same = known.find((one) => plain(one) === name);
  const meant = same ?? known.find((one) => SYNONYMS[one]?.split(' ').includes(name));
  if (meant) return `it is ${meant}`;
  const sentence = Object.keys(SENTENCES).find((one) => SENTENCES[one].split(' ').includes(name));
  if (sentence) return sentence;
  const near = nearest(name, known);
  return near ? `perhaps ${near} is meant` : '';
}
