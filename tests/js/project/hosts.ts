// SPDX-License-Identifier: MIT
// Invalid hosts: each line below must fail to compile. Otherwise the check of the real hosts in types.test.mjs would
// prove nothing.
import type { Host } from '../../../js/worker/service.js';
import type { EngineHost } from '../../../js/worker/start.js';

declare const host: Host;
export const whole: Host = host;
export const part: EngineHost = host;

const { listen, ...deaf } = host;
const { template, ...mute } = host;
const { obstacle, ...bold } = host;
const { post, ...silent } = host;
export const unused = [listen, template, obstacle, post];

// @ts-expect-error
export const a: Host = deaf;
// @ts-expect-error
export const b: Host = mute;
// @ts-expect-error
export const c: Host = bold;
// @ts-expect-error
export const d: EngineHost = silent;
// @ts-expect-error
export const e: EngineHost = { ...host, glue: { 32: host.glue[32] } };
// @ts-expect-error
export const f: EngineHost = { ...host, compile: async (build: 32 | 64) => ({ build }) };
// @ts-expect-error
export const g: EngineHost = { ...host, openParts: async () => ({ parts: [] }) };
// @ts-expect-error
export const h: EngineHost = { ...host, hardwareThreads: '4' };
