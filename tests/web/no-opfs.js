// SPDX-License-Identifier: MIT
// A browser that refuses its store, as in private windows.
StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException('The operation is insecure.', 'SecurityError'));
