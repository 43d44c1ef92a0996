// SPDX-License-Identifier: MIT
// The engine's worker, with a device that is destroyed behind so many submits as QUERN_LOSE_AT says. The first one is the
// trial's. Node 20 leaves out what stands behind a ? in a worker's address.

import { globals } from 'webgpu';

let left = Number(process.env.QUERN_LOSE_AT);
let device;

const { requestDevice } = globals.GPUAdapter.prototype;
globals.GPUAdapter.prototype.requestDevice = async function request(...given) {
  device = await requestDevice.apply(this, given);
  return device;
};

const { submit } = globals.GPUQueue.prototype;
globals.GPUQueue.prototype.submit = function submitAndLose(...given) {
  submit.apply(this, given);
  if (--left !== 0) return;
  device.destroy();
  const channel = new BroadcastChannel('lost');
  channel.postMessage('lost');
  channel.close();
};

await import('../../../dist/worker.node.mjs');
