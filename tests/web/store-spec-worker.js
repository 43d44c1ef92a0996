// SPDX-License-Identifier: MIT
// Runs the specification of stores with the browser's store, which is synchronous in workers only.
import { guarded } from '../../js/store/guard.js';
import { OpfsStore } from '../../js/store/store-opfs.js';
import { STORE_SPEC } from '../js/store/store-spec.mjs';

const stores = [new OpfsStore(), new OpfsStore()].map((store) => guarded(store));
const failures = [];
for (const [name, check] of Object.entries(STORE_SPEC)) {
  await check(...stores).catch((error) => { failures.push(`${name}: ${error.message}`); });
}
postMessage({ checked: Object.keys(STORE_SPEC).length, failures });
