// SPDX-License-Identifier: MIT
// The engine's worker where the browser refuses its store, as in private windows.
StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException('The operation is insecure.', 'SecurityError'));
await import('../../dist/worker.js');
