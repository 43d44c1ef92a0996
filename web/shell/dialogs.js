// SPDX-License-Identifier: MIT
// What all dialogs that lie over the page have: a button that closes them, and a backdrop that does.

export function closeDialogs() {
  for (const close of document.querySelectorAll('dialog [data-close]')) {
    const dialog = close.closest('dialog');
    close.addEventListener('click', () => dialog.close());
    // A click on the backdrop is a click on the dialog itself.
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  }
}
