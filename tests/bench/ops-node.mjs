// SPDX-License-Identifier: MIT
// `node ops-node.mjs VARIANT THREADS`: the wasm operations behind the line protocol of ops.c's main.
import { createInterface } from 'node:readline';
import { allowRelaxed } from '../../js/shared/node-flags.js';
import { openOps } from './ops-wasm.mjs';

const [variant, threads] = process.argv.slice(2);
allowRelaxed();
const { default: glue } = await import(`../../build/wasm/bench/node/ops-${variant}.mjs`);
const { facts, cell } = await openOps(glue, Number(threads));
console.log(JSON.stringify(facts));
for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(cell(...line.split(' ').map(Number))));
process.exit();    // the threads would keep it alive
