// SPDX-License-Identifier: MIT
// Accepts files that are dropped anywhere on the page. Dropped markup and links are neither read nor followed.
import { byId } from './dom.js';

const hasFiles = (event) => event.dataTransfer?.types.includes('Files') ?? false;

/** @param {(files: File[]) => void} onFiles */
export function acceptDrops(onFiles) {
  const veil = byId('drop');
  addEventListener('dragover', (event) => {
    const isField = event.target instanceof Element && event.target.closest('input, textarea');
    if (!hasFiles(event) && isField) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = hasFiles(event) ? 'copy' : 'none';
    veil.hidden = !hasFiles(event);
  });
  addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) veil.hidden = true;
  });
  addEventListener('drop', (event) => {
    veil.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    onFiles([...event.dataTransfer.files]);
  });
}
