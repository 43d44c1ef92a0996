// SPDX-License-Identifier: MIT
// What drafts.mjs asks of quern in Node.
import { load as loadModel } from '../../../dist/node.js';
import { draftsDriver } from '../page/drafts-driver.js';

export const { load, dispose, rows, reply } = draftsDriver(loadModel);
