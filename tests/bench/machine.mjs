// SPDX-License-Identifier: MIT
// What a measurement has to say about the machine it ran on, and memory as the kernel counts it.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';

/** Instruction sets that decide what a browser makes of wasm's vector instructions. */
const CPU_FLAGS = ['sse4_1', 'avx', 'avx2', 'avx512f', 'avx_vnni', 'avx512_vnni', 'asimd', 'asimddp'];

function cpuFlags() {
  try {
    const flags = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))[1].split(' ');
    return CPU_FLAGS.filter((flag) => flags.includes(flag));
  } catch {
    return [];
  }
}

function commit() {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'unknown';
  }
}

/** @param {string} browser name and version */
export function describeMachine(browser) {
  const all = cpus();
  return {
    cpu: all[0].model.trim(), cores: all.length, flags: cpuFlags(), memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`, browser, node: process.version, commit: commit(), date: new Date().toISOString().slice(0, 10),
  };
}

/** A line for people. */
export function machineLine({ cpu, cores, flags, memoryGiB, browser, node, commit: version, date }) {
  return `${cpu}, ${cores} cores (${flags.join(' ')}), ${memoryGiB} GiB; ${browser}, Node ${node}; quern ${version}; ${date}`;
}

/** Load of the machine over the last minute, in running programs; what else runs makes figures worse. */
export const loadAverage = () => Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0]);

/** A process's memory now and at its peak, in bytes. @returns {{now: number, peak: number}} */
export function processMemory(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const bytes = (name) => 1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
  return { now: bytes('VmRSS'), peak: bytes('VmHWM') };
}

/** A process and all that it has started, by their ids. @returns {number[]} */
export function processFamily(pid) {
  const parents = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      return [[Number(name), Number(/^.*\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))[1])]];
    } catch {
      return [];    // it has ended meanwhile
    }
  });
  const family = [pid];
  for (const member of family) family.push(...parents.filter(([, parent]) => parent === member).map(([child]) => child));
  return family;
}
