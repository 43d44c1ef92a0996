// SPDX-License-Identifier: MIT
// What drafts.mjs asks of a page.
import { load as loadModel } from '../../../dist/index.js';
import { draftsDriver } from './drafts-driver.js';

export const { load, dispose, rows, reply } = draftsDriver(loadModel);
