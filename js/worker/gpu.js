// SPDX-License-Identifier: MIT
// What the worker loads first when a graphics device is to compute; bundled apart from it.

import { openDevice as open } from '../gpu/device.js';

export const openDevice = (how) => open(globalThis.navigator.gpu, how);
