// SPDX-License-Identifier: MIT
// The host that this code runs in, and the word for it in messages.

export const inNode = Boolean(globalThis.process?.versions?.node);

export const HOST = inNode ? 'machine' : 'browser';
