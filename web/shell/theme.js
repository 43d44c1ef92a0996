// SPDX-License-Identifier: MIT
// The switch between light and dark. Until it is used the system decides (style.css); boot.js puts the choice
// back before the first paint of the next visit.
import { byId } from './dom.js';

export function themeSwitch() {
  const root = document.documentElement;
  const systemDark = matchMedia('(prefers-color-scheme: dark)');
  byId('theme').addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : systemDark.matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    try {
      localStorage.setItem('quern:theme', root.dataset.theme);
    } catch {
      // Kept for this visit only.
    }
  });
}
