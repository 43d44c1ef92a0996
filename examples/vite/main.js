// SPDX-License-Identifier: MIT
import { load } from 'quern';

const [status, form, log] = document.querySelectorAll('[role=status], form, [role=log]');
const button = form.querySelector('button');
const messages = [];

const model = await load('demo-q8_0.gguf', {
  onProgress: ({ loaded, total }) => { status.textContent = `${Math.floor((100 * loaded) / total)} %`; },
});
status.textContent = `${model.info.name}, ${model.info.variant}, ${model.info.threads} threads`;
button.disabled = false;

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  button.disabled = true;
  messages.push({ role: 'user', content: form.message.value });
  log.textContent = '';
  const reply = model.chat(messages);
  for await (const text of reply) log.append(text);
  messages.push({ role: 'assistant', content: (await reply.result).text });
  button.disabled = false;
});
