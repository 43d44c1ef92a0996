// SPDX-License-Identifier: MIT
// Keeps what the extension's documents tell, of which some are shown in no tab.
new BroadcastChannel('quern').onmessage = ({ data }) => { globalThis.outcome = data; };
