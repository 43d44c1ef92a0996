// SPDX-License-Identifier: MIT
// Closes dialogs: by their close button, and by a click on the backdrop.

export function closeDialogs() {
  for (const close of document.querySelectorAll('dialog [data-close]')) {
    const dialog = close.closest('dialog');
    close.addEventListener('click', () => dialog.close());
    // A click on the backdrop is a click on the dialog itself.
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  }
}
