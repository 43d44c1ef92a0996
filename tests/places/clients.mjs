// SPDX-License-Identifier: MIT
// Programs of other people against `quern serve`, each with its client's main story (projects/clients): a reply, the same streamed, a call of a tool
// that it demands, and an output that has a form. Those for Python have an environment of their own below build/places, as they need versions of
// each other that do not go together.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from '../fixtures/golden.mjs';
import { load } from '../../js/node.js';
import { checkLmEval } from './lm-eval.mjs';
import { DEMO } from './visit.mjs';
import { WORKSHOP, freePort, install, once, outputOf, run, say, start, versionOf, versionsOf } from './workshop.mjs';

export const title = 'Clients of the server';

export const about = 'Each program requests from `quern serve` a reply, the same reply streamed, a required call of a tool, and a structured output, as far as it supports these,\n'
  + 'and must get the same text as a plain request.';

const PROGRAMS = join(PROJECT, 'tests/places/projects/clients');

/** What a program may take, in ms: some Python packages take half a minute to import. */
const PATIENCE_MS = 180_000;

/** Each client's program; those that end in .py run in Python. */
const CLIENTS = {
  'openai, npm': 'openai.mjs', 'AI SDK, openai': 'ai-openai.mjs', 'AI SDK, openai-compatible': 'ai-compatible.mjs', 'LangChain.js': 'langchain.mjs',
  'OpenAI Agents SDK, npm': 'agents.mjs', 'ollama, npm': 'ollama.mjs', 'Anthropic SDK, npm': 'anthropic.mjs',
  'openai, PyPI': 'with_openai.py', LangChain: 'with_langchain.py', LlamaIndex: 'with_llamaindex.py', LiteLLM: 'with_litellm.py',
  'Pydantic AI': 'with_pydantic_ai.py', Instructor: 'with_instructor.py', 'OpenAI Agents SDK, PyPI': 'with_agents.py',
  'ollama, PyPI': 'with_ollama.py', 'Anthropic SDK, PyPI': 'with_anthropic.py',
};

/** One server of the packed package for all clients, until the process ends. @returns {Promise<string>} its address */
const server = once(async () => {
  const folder = install('Clients');
  const base = `http://127.0.0.1:${await freePort()}`;
  const end = await start([process.execPath, 'node_modules/.bin/quern', 'serve', DEMO, '--port', new URL(base).port, '--threads', '2'], `${base}/health`, { cwd: folder });
  process.once('exit', end);
  return base;
});

/** What a plain request gets, without any client. */
const reference = once(async () => {
  const { question } = JSON.parse(readFileSync(join(PROGRAMS, 'facts.json')));
  const body = JSON.stringify({ messages: [{ role: 'user', content: question }], temperature: 0 });
  const answer = await fetch(`${await server()}/v1/chat/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  return (await answer.json()).choices[0].message.content;
});

/** A folder with a Python environment of its own. @returns {string} its path */
function installPython(name) {
  const folder = join(WORKSHOP, name.toLowerCase().replaceAll(/[^a-z\d]+/g, '-'));
  const list = Object.entries(versionsOf(name)).map(([one, version]) => `${one}==${version}`);
  const stamp = join(folder, '.installed');
  mkdirSync(folder, { recursive: true });
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== list.join()) {
    say(`${name}: installing ${list.join(', ')}`);
    rmSync(join(folder, 'python'), { recursive: true, force: true });
    execFileSync('python3', ['-m', 'venv', 'python'], { cwd: folder, stdio: 'ignore' });
    execFileSync('python/bin/pip', ['install', '--quiet', '--disable-pip-version-check', ...list], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
    writeFileSync(stamp, list.join());
  }
  cpSync(PROGRAMS, folder, { recursive: true });
  return folder;
}

/** What a client's program says, against what a plain request gets. */
function judge({ text, streamed, call, value, more = [] }, expected) {
  for (const one of [text, streamed, ...more]) if (one !== undefined) assert.equal(one, expected, 'the text is another one than a plain request gets');
  if (call) assert.equal(call.name, 'weather');
  for (const one of [call?.arguments, value]) if (one !== undefined) assert.match(JSON.stringify(one), /^\{"city":"(Nairobi|Oslo)"\}$/);
  const done = [text !== undefined && 'a reply', streamed !== undefined && 'streamed', call && 'a call', value && 'a form'].filter(Boolean);
  return { note: `works: ${done.join(', ')}` };
}

const isPython = (program) => program.endsWith('.py');

const story = (program) => async (folder) => {
  const command = isPython(program) ? ['python/bin/python3', program] : [process.execPath, program];
  const { out } = await run([...command, await server()], { cwd: folder, limit: PATIENCE_MS });
  return judge(JSON.parse(out.trim().split('\n').at(-1)), await reference());
};

/** lm-eval asks for what the model thinks of a prompt. */
async function evaluated(folder) {
  const model = await load(DEMO, { threads: 2, workerUrl: new URL('../../dist/worker.node.mjs', import.meta.url) });
  try {
    return { note: `works: ${await checkLmEval(join(folder, 'python/bin/python3'), await server(), model)} likelihoods, equal to the logits` };
  } finally {
    await model.dispose();
  }
}

const python = once(() => outputOf('python3', ['--version']));

export const places = [
  ...Object.entries(CLIENTS).map(([name, program]) => ({
    name, version: versionOf(name), patience: PATIENCE_MS, by: () => (isPython(program) ? python() : `Node ${process.versions.node}`),
    open: async () => (isPython(program) ? installPython(name) : install(name, ['clients'])),
    cases: { 'its story': story(program) },
  })),
  {
    name: 'lm-eval', version: versionOf('lm-eval'), patience: PATIENCE_MS, by: python,
    open: async () => installPython('lm-eval'), cases: { 'a loglikelihood task': evaluated },
  },
];
