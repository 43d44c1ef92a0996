// SPDX-License-Identifier: MIT
// The stores that run in Node do what every store must (store-spec.mjs). OPFS: tests/web/store-spec.test.mjs.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { guarded } from '../../../js/store/guard.js';
import { FolderStore } from '../../../js/store/store-node.js';
import { PortStore, serveStore } from '../../../js/store/store-port.js';
import { Disk, MemoryStore } from '../../fixtures/memory-store.mjs';
import { STORE_SPEC } from './store-spec.mjs';

/** Each kind of store: two ways to one place. */
const STORES = {
  'a folder': (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'quern-spec-'));
    t.after(() => rmSync(folder, { recursive: true }));
    return [new FolderStore(folder), new FolderStore(folder)];
  },
  memory: () => {
    const disk = new Disk();
    return [new MemoryStore(disk), new MemoryStore(disk)];
  },
  'memory over a port': (t) => {
    const disk = new Disk();
    return [0, 1].map(() => {
      const { port, end } = serveStore(new MemoryStore(disk));
      t.after(end);
      return new PortStore(port);
    });
  },
};

for (const [kind, make] of Object.entries(STORES)) {
  test(`${kind} is a store`, async (t) => {
    const stores = make(t).map((store) => guarded(store));
    for (const [name, check] of Object.entries(STORE_SPEC)) await t.test(name, () => check(...stores));
  });
}
