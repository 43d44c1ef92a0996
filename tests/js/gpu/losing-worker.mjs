// SPDX-License-Identifier: MIT
// The engine's worker, with a device that is destroyed behind so many submits as QUERN_LOSE_AT says, counted from the
// first one that is not the trial's. Node 20 leaves out what stands behind a ? in a worker's address.

import { globals } from 'webgpu';

let left = Number(process.env.QUERN_LOSE_AT);
let device;
let computes = false;    // whether the engine has begun

const { requestDevice } = globals.GPUAdapter.prototype;
globals.GPUAdapter.prototype.requestDevice = async function request(...given) {
  device = await requestDevice.apply(this, given);
  return device;
};

const { createComputePipeline } = globals.GPUDevice.prototype;
globals.GPUDevice.prototype.createComputePipeline = function create(given) {
  computes ||= given.label !== 'trial';
  return createComputePipeline.call(this, given);
};

const { submit } = globals.GPUQueue.prototype;
globals.GPUQueue.prototype.submit = function submitAndLose(...given) {
  submit.apply(this, given);
  if (!computes || --left !== 0) return;
  device.destroy();
  const channel = new BroadcastChannel('lost');
  channel.postMessage('lost');
  channel.close();
};

await import('../../../dist/worker.node.mjs');
