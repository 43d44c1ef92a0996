// SPDX-License-Identifier: MIT
// A page that holds another one in a frame, or page.js in a module worker, and waits for its word. The query says which:
// `frame` is the frame's address, `sandbox` and `allow` its attributes; else `worker`. What is after the # is passed on.
const { frame, ...attributes } = Object.fromEntries(new URLSearchParams(location.search));
const keep = ({ data }) => { globalThis.outcome = data; };

if (frame) {
  addEventListener('message', keep);
  const element = document.createElement('iframe');
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.src = frame + location.hash;
  document.body.append(element);
} else {
  const worker = new Worker(`./page.js${location.hash}`, { type: 'module' });
  worker.onmessage = keep;
  worker.onerror = ({ message }) => keep({ data: { error: `worker: ${message}` } });
}
