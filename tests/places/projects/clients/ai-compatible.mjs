// SPDX-License-Identifier: MIT
// Vercel's AI SDK with its provider for servers like this one, which asks /v1/chat/completions.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { base } from './client.mjs';
import { story } from './ai.mjs';

await story(createOpenAICompatible({ name: 'quern', baseURL: `${base}/v1`, supportsStructuredOutputs: true })('any'));
