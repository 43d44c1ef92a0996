// SPDX-License-Identifier: MIT
// A stranger's program: main.js MODEL. Prints what came of it.
import { load } from 'quern';
import { answer } from './answer.js';

console.log(JSON.stringify(await answer(load, process.argv[2])));
