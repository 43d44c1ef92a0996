// SPDX-License-Identifier: MIT
// A side panel opens only at a click, beside the window of it.
const { id } = await chrome.windows.getCurrent();

document.querySelector('button').onclick = () => {
  chrome.sidePanel.setOptions({ path: `page.html${location.hash}`, enabled: true });
  chrome.sidePanel.open({ windowId: id });
};
