// SPDX-License-Identifier: MIT
// The texts that mark the parts of a conversation. Families of models have marks of their own; which of them a model
// has, the engine knows by its architecture (info.marks, src/load/architecture.c).

/**
 * @typedef {object} Marks
 * @property {{open: string, close: string, type: 'thinking'}} thinking as a channel (text.js)
 * @property {(role: string, content: string) => string} message of a conversation, for files without a template
 * @property {string} reply what begins one there
 * @property {Record<'image' | 'video', string>} pads what stands for a part of an image, or of a video
 * @property {[string, string]} around what stands before such parts, and behind them
 */

/** @type {Record<string, Marks>} */
export const MARKS = {
  qwen: {
    thinking: { open: '<think>', close: '</think>', type: 'thinking' },
    message: (role, content) => `<|im_start|>${role}\n${content}<|im_end|>\n`,
    reply: '<|im_start|>assistant\n',
    pads: { image: '<|image_pad|>', video: '<|video_pad|>' },
    around: ['<|vision_start|>', '<|vision_end|>'],
  },
};
