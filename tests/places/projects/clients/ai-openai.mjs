// SPDX-License-Identifier: MIT
// Vercel's AI SDK with OpenAI's provider, which asks /v1/responses.
import { createOpenAI } from '@ai-sdk/openai';
import { base } from './client.mjs';
import { story } from './ai.mjs';

await story(createOpenAI({ baseURL: `${base}/v1`, apiKey: 'none' })('any'));
