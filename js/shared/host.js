// SPDX-License-Identifier: MIT
// What this runs in, in the words of its users.

export const inNode = Boolean(globalThis.process?.versions?.node);

export const HOST = inNode ? 'machine' : 'browser';
