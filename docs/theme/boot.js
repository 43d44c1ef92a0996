// SPDX-License-Identifier: MIT
// Runs before the first paint, as a plain script: the theme that was chosen here or on the chat page must not flash.

try {
  const theme = localStorage.getItem('quern:theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the system's theme is used.
}
