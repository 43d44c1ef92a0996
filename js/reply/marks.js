// SPDX-License-Identifier: MIT
// The texts that mark the parts of a conversation, by family of models. The engine knows a model's family by its
// architecture (info.marks, src/load/architecture.c).

/**
 * @typedef {object} Marks
 * @property {{open: string, close: string, type: 'thinking'}} thinking as a channel (text.js)
 * @property {(role: string, content: string) => string} message a message, for files without a template
 * @property {string} reply the beginning of a reply, for such files
 * @property {boolean} begins whether such a prompt begins with the bos token, if texts get one
 * @property {Record<'image' | 'video', string>} pads placeholders for a part of an image or of a video
 * @property {[string, string]} around the marks before and after such parts
 */

/** @type {Record<string, Marks>} */
export const MARKS = {
  qwen: {
    thinking: { open: '<think>', close: '</think>', type: 'thinking' },
    message: (role, content) => `<|im_start|>${role}\n${content}<|im_end|>\n`,
    reply: '<|im_start|>assistant\n',
    begins: false,
    pads: { image: '<|image_pad|>', video: '<|video_pad|>' },
    around: ['<|vision_start|>', '<|vision_end|>'],
  },
  llama: {
    thinking: { open: '<think>', close: '</think>', type: 'thinking' },
    message: (role, content) => `<|start_header_id|>${role}<|end_header_id|>\n\n${content}<|eot_id|>`,
    reply: '<|start_header_id|>assistant<|end_header_id|>\n\n',
    begins: true,
    pads: { image: '<|image|>', video: '<|video|>' },
    around: ['', ''],
  },
};
