// SPDX-License-Identifier: MIT
// Runs before the first paint, as a plain script: the chosen theme must not flash, and a page inside somebody
// else's frame must not show anything a visitor could be tricked into using.

const root = document.documentElement;

if (self !== self.top) {
  root.dataset.framed = '';
  document.addEventListener('DOMContentLoaded', () => {
    const sentence = document.createElement('p');
    sentence.className = 'refusal';
    sentence.textContent = 'quern does not run inside another page. Open it in a tab of its own.';
    document.body.replaceChildren(sentence);
  });
}

try {
  const theme = localStorage.getItem('quern:theme');
  if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;
} catch {
  // No storage: the system's theme is used.
}
