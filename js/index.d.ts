// SPDX-License-Identifier: MIT

/**
 * quern runs Qwen3 language models from GGUF files on the visitor's own CPU, in a web page or in Node.
 *
 * ```js
 * import { load } from 'quern';
 * const model = await load('https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf');
 * for await (const text of model.chat('Hi')) out.append(text);
 * ```
 *
 * Every failure is a {@link QuernError}, or the `signal`'s reason (an `AbortError` by default) when you aborted.
 * Every promise settles. A server that does not answer is given up within two minutes (`net/stalled`); a download that breaks off or falls
 * silent is resumed by itself, and one that does not come back ends with a `net/*` error after five silences of half a minute at most.
 */

/**
 * Where a model comes from: a URL, a picked or dropped file, a file of a repository (`hf:OWNER/REPO/FILE@REVISION` for short, or by its type `hf:OWNER/REPO:Q8_0`), and in Node also a path or a `file:` URL.
 * Of a split model name the first part (`…-00001-of-00003.gguf`), or give all its files in an array, in any order. The same goes for the
 * files of a Hugging Face folder (safetensors and JSON; others are left out) and for a qwen3.c checkpoint with its `.tokenizer` file; in
 * Node the path of the folder, or of the checkpoint, is enough. A folder on a server is an address that ends in a slash, the page of a
 * repository on Hugging Face, or a repository without a file; of its safetensors files all are kept and listed as one model. Beside a GGUF file
 * in such an array or folder, `tokenizer.json`, `chat_template.jinja` or `tokenizer_config.json`, and `generation_config.json` count instead of its own
 * vocabulary, chat templates and end tokens. Of picked files the names tell what they are, with their folders (`webkitRelativePath`) where there are
 * folders below: only what lies beside the weights counts, and `additional_chat_templates/` and `1_Pooling/` there.
 */
export type Source = string | URL | Blob | readonly Blob[] | Shown<'FileList'> | Repository;

/** A file in a repository of Hugging Face, or of a mirror that has the same addresses; without `file` the repository's folder. */
export interface Repository {
  /** Such as `Qwen/Qwen3-0.6B-GGUF`. */
  repo: string;
  /** Its name there, with folders. */
  file?: string | undefined;
  /** Instead of a name: the GGUF file whose name has this type (`Q8_0`, `Q4_K_M`), all parts of it. The server is asked which that is, unless it is stored. */
  type?: string | undefined;
  /** A branch, a tag or, best, a commit. Default `main`. */
  revision?: string | undefined;
  /** Address of the server. Default `https://huggingface.co`. */
  endpoint?: string | undefined;
}

export interface Progress {
  /** `download`: bytes come over the network. `load`: from a local file, and the last event of every load. */
  phase: 'download' | 'load';
  /** Bytes so far, from the network or the store; never decreases. */
  loaded: number;
  /** Bytes in all; 0 while not known. */
  total: number;
  /** Whether the whole model comes from the store: no request is made, unless a part of it turns out to be damaged. */
  cached: boolean;
  /**
   * Only while nothing comes because a request failed (a busy server, a broken connection) and will be repeated by itself: after `ms`
   * milliseconds, null as soon as the device is online again. `code` and `message` say what failed, as a {@link QuernError} would.
   */
  waiting?: { ms: number | null; code: string; message: string };
}

/** Which compiled kernels to use. The best available one is chosen when you name none. */
export type Variant = 'scalar' | 'simd' | 'relaxed';

/** What weights become while they are loaded. */
export type Quantize = 'none' | 'q8' | 'q4';

/** Bits of the engine's addresses. */
export type Address = 32 | 64;

/** Options as they are given: null is the same as nothing. */
export type Given<Options> = { [Name in keyof Options]: Options[Name] | null | undefined } | null;

export interface LoadOptions {
  /** Aborts the load at any point; nothing stays behind. */
  signal?: AbortSignal | undefined;
  /**
   * Called at most about ten times a second, and once at the very end with `loaded === total`. What it throws ends the load; what an async
   * one rejects with is reported on the console.
   */
  onProgress?: ((progress: Progress) => void) | undefined;
  /**
   * Positions (tokens) a conversation may have, reply included; at most the model's own. Memory for all of them is taken at once.
   * Default: 4096, or as many as fit where these do not, 512 at least. One that does not fit is refused (`mem/plan`) before the
   * file is downloaded, and `detail.contextSize` says which would.
   */
  contextSize?: number | undefined;
  /**
   * Replies that are made side by side, 1 to 16; 64 more may wait, in the background no more than 32 of them. Default 4. What a reply says never
   * depends on the others. Each has room for the whole context, as far as there is any: see `kvPositions`.
   */
  parallel?: number | undefined;
  /**
   * Positions that all replies together have room for, at least `contextSize`, which is the default; what is unused remembers conversations.
   * Where it runs short the youngest reply lets go and goes on later, saying the same. Twice the context lets two of full length run side by side.
   */
  kvPositions?: number | undefined;
  /**
   * Bytes of the store that conversations kept by {@link ChatOptions.keep} may take together. Default 2 GiB. Where a new one needs the room the one
   * that was used longest ago goes; of one that is larger its beginning is kept. 0: none is kept.
   */
  keepMaxBytes?: number | undefined;
  /**
   * Bytes of memory that may be used. Default: what the browser grants and the device has, as far as it tells. What replies are held to (a schema, the
   * calls of tools) has a memory beside the model's, of what {@link Info.memory} `wasm` leaves: at most 160 MiB, some 20 MB to begin with. Where
   * that is not left the first such reply fails with `mem/plan`.
   */
  memoryLimit?: number | undefined;
  /**
   * Bits of the engine's addresses. Default: 32, and 64 where the model needs more than 4 GiB (up to 16) and the browser has them.
   * Asked for where they are not there: `env/simd`.
   */
  address?: Address | undefined;
  /**
   * Threads, 1 to 64. Default: the machine's, at most 8. One, where the page is not cross-origin isolated or threads do not start. Fewer of them
   * work while the machine has no processors for all: then fewer are faster.
   */
  threads?: number | undefined;
  /**
   * Type of the numbers kept per position. `f16` (default) takes half the memory of `f32`, and `q8` (8 bits and a scale for each 32
   * numbers) 9/16 of `f16`'s; its replies differ slightly. `q8` needs heads of a multiple of 32 columns (`use/param` otherwise).
   */
  kv?: 'f16' | 'q8' | 'f32' | undefined;
  /**
   * What the weights become while they are loaded: `q8` the very blocks of a Q8_0 GGUF file, `q4` those of a Q4_0 one, so that memory and speed are
   * that file's, and of a file of floats its logits to the bit. Weights that are quantised already are decoded first, which loses more than
   * a file of that type made from floats. No weight becomes larger: what has as few bits stays what it is, and so do vectors, routers, rows that
   * are no multiple of 32, FP8 and qwen3.c's weights. Default `none`: as stored.
   *
   * `auto`: as stored where that fits the memory there is (64-bit addresses included), with the least default context if need be; else `q8`; else
   * `q4`. {@link Info.quantize} tells which. An object says it for the layers' weights and the embeddings (the output head too) apart, what it leaves
   * out being `none`: `{ weights: 'q4', embeddings: 'q8' }` costs less accuracy.
   */
  quantize?: Quantize | 'auto' | { weights?: Quantize | null | undefined; embeddings?: Quantize | null | undefined } | undefined;
  /** Request headers for the download, such as `{ Authorization: 'Bearer …' }` for a gated or private repository. */
  headers?: Record<string, string> | Headers | undefined;
  /**
   * Whether `headers` may also go to another origin that the server redirects to (Authorization and Cookie never do). Default false: they
   * are left out there. A page is not told where a redirect leads, so there headers other than these two are refused at one (`use/param`).
   */
  forwardHeaders?: boolean | undefined;
  /**
   * Where a model from the network is kept, so that it is downloaded once: every chunk is stored while it is loaded, and checked before
   * it is used again. An interrupted download goes on where it was; a damaged chunk alone is fetched again. `true` (default): the
   * browser's own store (OPFS), in Node the user's folder for caches; in Node also another folder's path; or a {@link Store}.
   * Where nothing can be kept, or there is no room, the load goes on without and says so on the console.
   */
  store?: boolean | string | Store | undefined;
  /**
   * What the file must hash to, in hexadecimal digits; of a split model or a folder one for each file, in the order in which they are read, that of the
   * projector last. `model/integrity` otherwise, and it is not kept.
   */
  sha256?: string | readonly string[] | undefined;
  /**
   * The model's vision part. Of a GGUF model its projector, one more file (`mmproj-….gguf`), which is kept, counted and checked with the model's own. Of a
   * Hugging Face folder, which has both: `true` (default) reads the vision part, `false` leaves it out and saves its memory. Without it a model
   * answers about text alone (`info.vision` is null).
   */
  vision?: Source | boolean | undefined;
  /** How images are looked at; see {@link VisionOptions}. */
  visionOptions?: Given<VisionOptions> | undefined;
  /** Kernels to use. One that this machine cannot run is an error (`env/simd`), never a silent fallback. */
  variant?: Variant | undefined;
  /** Tokens read per step, 1 to 1024, of all prompts together. Default 64. Results do not depend on it. */
  chunk?: number | undefined;
  /** Whether to measure what each operation costs, for {@link Model.profile}. Default false, which costs nothing. */
  profile?: boolean | undefined;
  /** Address of `worker.js`, for bundlers that do not follow `new URL(…, import.meta.url)`. It names code to run: take it from nobody else. */
  workerUrl?: string | URL | undefined;
  /**
   * Address of the wasm file, for the same reason. It must be the file of the variant in use: `quern-relaxed-text.wasm` and so on for models of texts;
   * those without `-text` do for all. `grammar.wasm`, which replies in a form need, is looked for beside it.
   */
  wasmUrl?: string | URL | undefined;
}

/**
 * Limits of images and videos, which cost a token for each 1,024 pixels (a video's for each 1,024 of two frames) and seconds of looking. What is
 * larger is reduced, what is smaller enlarged, keeping its shape nearly: sides are multiples of 32.
 */
export interface VisionOptions {
  /** Most pixels of an image. Default 262,144 (256 tokens), with `detail: 'high'` 1,048,576; memory to look is taken for so many. */
  maxPixels?: number | undefined;
  /** Least pixels of an image. Default: the model's own, 65,536: smaller ones are enlarged. */
  minPixels?: number | undefined;
  /** Most pixels of all frames of a video together. Default 524,288 (256 tokens). */
  maxVideoPixels?: number | undefined;
  /** Least pixels of all frames of a video together. Default: the model's own, 4,096. */
  minVideoPixels?: number | undefined;
  /** Frames that are taken of a video at most, 2 to 768. Default 16. */
  maxFrames?: number | undefined;
  /**
   * Memory for what was looked at, for when its place in the context was needed for others. Default 64 MiB. What one `cacheScope` has shown is looked
   * at anew for another one; where there is no more room, the scope with the most gives up its oldest.
   */
  mediaCacheBytes?: number | undefined;
  /** Most pixels of an image as it comes, before it is reduced, and of a frame. Default 100,000,000, which is what can be read at all. */
  maxImagePixels?: number | undefined;
  /** Most images of a conversation, where each frame that is looked at counts. Default: as many as may be in messages. */
  maxImages?: number | undefined;
  /** Memory for all images that are decoded at a time: others wait, one that needs more alone is refused (`image/size`). Default 2 GiB. */
  imageMemoryBytes?: number | undefined;
}

/**
 * Loads a model. A failed or aborted load leaves nothing behind and may be repeated.
 *
 * Rejects with `model/*` (the file), `net/*` (the download), `mem/*`, `env/*` (this browser), `use/param`, or the signal's reason.
 */
export function load(source: Source, options?: Given<LoadOptions>): Promise<Model>;

/** A model in the store, or the part of it that has come. */
export interface StoredModel {
  /**
   * Its address, without a signature; serves as source again. Where the address has another query, which may be secret, a hash stands for it
   * (`…#query=…`): this finds, loads and removes the stored model, but nothing can be downloaded from it.
   */
  id: string;
  url: string;
  /** Name of the (first) file. */
  name: string;
  files: number;
  /** Bytes of all files; 0 while not known. */
  size: number;
  /** Bytes that are there. */
  loaded: number;
  complete: boolean;
  /** When it was last loaded completely, in milliseconds since 1970; 0: never. */
  lastUsed: number;
  /** The address of the projector that is kept with it, the last of its files; serves as `vision` again. */
  vision?: string;
}

export interface CacheOptions {
  /** The store, as for {@link LoadOptions.store}. */
  store?: true | string | Store | undefined;
}

export interface DownloadOptions extends CacheOptions {
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
  headers?: Record<string, string> | Headers | undefined;
  forwardHeaders?: boolean | undefined;
  sha256?: string | readonly string[] | undefined;
  /** A projector to keep with the model. */
  vision?: Source | boolean | undefined;
  workerUrl?: string | URL | undefined;
  wasmUrl?: string | URL | undefined;
}

/** The models that are kept on this machine. Everything rejects with `storage/*` where nothing can be kept. */
export interface Models {
  /** The last used first. */
  list(options?: Given<CacheOptions>): Promise<StoredModel[]>;
  /** Whether a model is there completely, with the projector where one is named, so that `load` needs no network. */
  has(source: Source, options?: Given<CacheOptions & { vision?: Source | boolean | undefined }>): Promise<boolean>;
  /**
   * Gets a model, or the rest of it, without loading it. Aborted, it keeps what has come. Somebody else's download is followed, unless that
   * stores nothing more for half a minute: `storage/busy`. Also `net/*`, `model/integrity`.
   */
  download(source: Source, options?: Given<DownloadOptions>): Promise<StoredModel>;
  /** Removes a model, by its source or id. `storage/busy` while it is being downloaded or loaded; models in use are not affected. */
  remove(source: Source, options?: Given<CacheOptions>): Promise<void>;
  /** What {@link Model.kept} gives, of a store and without a model. */
  kept(options?: Given<CacheOptions>): Promise<Kept[]>;
  /** What {@link Model.forget} does, without a model. A reply that a model is making under this name may be kept again behind it. */
  forget(name?: string | null, options?: Given<CacheOptions>): Promise<void>;
  /** Bytes that are stored (in a browser everything of this origin), bytes there may be, and whether the browser has promised not to clear them away. */
  usage(options?: Given<CacheOptions>): Promise<Usage>;
  /** Asks the browser for that promise; some ask their user. `load` and `download` do so once, when the first download begins. */
  persist(options?: Given<CacheOptions>): Promise<boolean>;
}

/** A conversation that is kept, by whichever model. Its name is a text of the caller's: show it as text. */
export interface Kept {
  name: string;
  /** How much of it is kept, in whole pages of 32 tokens, and the bytes that this takes. */
  tokens: number;
  bytes: number;
  /** When it was used last, in milliseconds since 1970; 0: not known. */
  date: number;
}

export const models: Models;

/**
 * Where models and conversations are kept: files under short names of lower-case letters, digits, dots and dashes, and locks. A store of your own is used from
 * the engine's worker over a port, so its methods run where you made it; each may return a promise or the value itself. Nothing
 * has to be atomic or flushed: what was stored is checked before use. A call that throws, answers with anything else than is said here, or
 * has not answered after 15 seconds costs the store, never the load. An error named `QuotaExceededError` means that there is no room.
 */
export interface Store {
  /** Names of all files. */
  list(): string[] | Promise<string[]>;
  /** The bytes of a (small) file, or null. They are handed over with their buffer: give a copy of what you keep. */
  read(name: string): Uint8Array | null | Promise<Uint8Array | null>;
  /** Opens a file; `write`: for writing too, and one that is not there is made. Null: there is none. Open files can be read and removed by others. */
  open(name: string, options: { write: boolean }): StoreFile | null | Promise<StoreFile | null>;
  /** Removes a file, if it is there. */
  remove(name: string): void | Promise<void>;
  /**
   * The only holder of a name among everybody who uses the store, until the returned function is called or the holder is gone.
   * Null: another one holds it, and `wait` is false. Rejects when the signal aborts.
   */
  lock(name: string, options: { wait: boolean; signal?: AbortSignal }): (() => void) | null | Promise<(() => void) | null>;
  /** Bytes that are stored, bytes there may be, and whether they are safe. */
  usage(): Usage | Promise<Usage>;
  /** Asks that they be safe. */
  persist?(): boolean | Promise<boolean>;
}

export interface Usage {
  used: number;
  quota: number;
  persisted: boolean;
}

/** An open file. */
export interface StoreFile {
  size(): number | Promise<number>;
  /** Fills `target` from the byte `at` on, as far as there are bytes. @returns how many */
  read(at: number, target: Uint8Array): number | Promise<number>;
  /** Writes from the byte `at` on, the gap before it being zeros. @returns how many bytes, which may be fewer */
  write(at: number, bytes: Uint8Array): number | Promise<number>;
  truncate(size: number): void | Promise<void>;
  flush(): void | Promise<void>;
  close(): void | Promise<void>;
}

/**
 * An image. A text is its address (`https:`, `data:`, `blob:`; in Node also a path), which is fetched without cookies; pixels are 8 bits each, RGB or
 * RGBA by their number. What a page shows is read when the call is made, and copies are taken, so that the caller may go on with it. PNG, JPEG, WebP,
 * GIF, BMP and AVIF, as far as the browser decodes them (Node: PNG and BMP itself, JPEG with `jpeg-js` installed, all with `sharp`); EXIF turns are
 * followed, what is transparent lies on white, of what moves the first image counts. At most 64 MiB, 16,384 pixels a side and 100 million in all.
 */
export type ImageSource = Blob | URL | string | PixelSource | Shown<'ImageBitmap' | 'HTMLImageElement' | 'HTMLCanvasElement' | 'OffscreenCanvas' | 'VideoFrame'>;

/** What a page shows, by name: `never` in projects without the types of pages. */
type Shown<Names extends string> = { [Name in Names]: typeof globalThis extends Record<Name, { prototype: infer Thing }> ? Thing : never }[Names];

/** Pixels in rows from the top, without gaps; an `ImageData` is one. */
export interface PixelSource {
  readonly data: Uint8Array | Uint8ClampedArray;
  readonly width: number;
  readonly height: number;
}

/**
 * A video: what a page can play (a file, an address, a `<video>`, of which some frames are taken, two a second), or its frames one by one, all of which
 * are looked at unless `sample` is true. Node takes frames alone. When each frame was says `fps` (default 24), or `timestamps` in seconds.
 */
export type VideoSource = Blob | URL | string | Shown<'HTMLVideoElement'>
  | { frames: readonly ImageSource[]; fps?: number | undefined; timestamps?: readonly number[] | undefined; sample?: boolean | undefined };

/** A part of a message. Images and videos stand in the user's messages, 64 in a conversation at most. */
export type Part =
  | { type: 'text'; text: string }
  | {
    type: 'image'; image: ImageSource;
    /** How closely it is looked at: up to 65,536 pixels, 262,144 (`auto`, the default) or 1,048,576, unless {@link VisionOptions} say otherwise. */
    detail?: 'low' | 'auto' | 'high' | undefined;
    /** At most those of {@link VisionOptions}, or 1,048,576. */
    maxPixels?: number | undefined;
  }
  | {
    type: 'video'; video: VideoSource;
    /** Frames that are taken of each second. Default 2. */
    fps?: number | undefined;
    maxFrames?: number | undefined;
    /** Of all frames together. */
    maxPixels?: number | undefined;
  }
  | { type: 'image_url'; image_url: string | { url: string; detail?: 'low' | 'auto' | 'high' | undefined } };

export interface Message {
  /** `tool`: the result of a call, behind the assistant's message that has it. */
  role: 'system' | 'user' | 'assistant' | 'tool';
  /** Plain text, or parts of it and images, which the user's messages and tools' may have: special tokens in it (`<|im_end|>`, `</think>`) stay text. */
  content: string | readonly Part[];
  /** Of an assistant's message: its thinking, as {@link Result.thinking} gave it. */
  thinking?: string | null | undefined;
  /** The same by the names that other programs have for it. The first one that is there counts: this one, `thinking`, `reasoning`. */
  reasoning_content?: string | null | undefined;
  reasoning?: string | null | undefined;
  /** Of an assistant's message: its calls, as {@link Result.toolCalls} gave them. Their arguments may be JSON as text, too. */
  toolCalls?: readonly { id: string; name: string; arguments: object | string }[] | undefined;
  /** Of a result: the id of its call. The model gets results in the order of their calls. */
  toolCallId?: string | undefined;
  /** Both as OpenAI's API has them. Fields by which other programs say more (`images`, `name`) are refused by name. */
  tool_calls?: readonly { id: string; type?: 'function' | undefined; function: { name: string; arguments: object | string } }[] | null | undefined;
  tool_call_id?: string | undefined;
}

/** What a model may call. Nothing of it becomes a special token, nor does anything in calls and results. */
export interface Tool {
  /** 1 to 64 letters, without spaces, quotes, backslashes and control characters. */
  name: string;
  description?: string | undefined;
  /**
   * JSON Schema of the arguments, an object, closed as {@link CompleteOptions.openObjects} says, or a {@link StandardSchema} (what the model writes are its input;
   * `run` gives `execute` its output). Without `properties`, and without a schema, there are none.
   */
  parameters?: object | undefined;
  /** The same by the name that MCP and the AI SDK have for it; a tool has one of them. */
  inputSchema?: object | undefined;
  /**
   * The whole tool as JSON, as the chat template is to see it: `{"type": "function", "function": {"name": …}}` with the numbers, the order and the
   * further members that its author wrote. Without it that is made of what stands above.
   */
  json?: string | undefined;
}

/** A call that the model has written. Nothing was run: see `quern/run`. */
export interface ToolCall {
  /** Random, for the message with its result. */
  id: string;
  name: string;
  arguments: Record<string, any>;
}

export interface CompleteOptions {
  /** Stops the work within 200 ms, while it waits or the prompt is read too. The reply then fails with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Longest reply in tokens. Default: until the context is full. 0: only read the prompt, so that a later reply starts sooner. */
  maxTokens?: number | undefined;
  /** Randomness, 0 to 100. 0 always takes the likeliest token. Default 0.6 when thinking (Qwen3-VL: 1), else 0.7. */
  temperature?: number | undefined;
  /** Keep the likeliest tokens that together have this probability, above 0 to 1 (off). Default 0.95 when thinking, else 0.8. */
  topP?: number | undefined;
  /** Keep this many of the likeliest tokens; 0: off. Default 20. */
  topK?: number | undefined;
  /** Drop tokens less likely than this share of the likeliest, 0 (off, default) to 1. */
  minP?: number | undefined;
  /** Divides the scores of tokens already in the text, above 0 to 10. Default 1 (off). */
  repeatPenalty?: number | undefined;
  /** Subtracted from the score of every token already in the reply, -2 to 2. Default 0 (Qwen3-VL without thinking: 1.5). */
  presencePenalty?: number | undefined;
  /** The same per occurrence, -2 to 2. Default 0. */
  frequencyPenalty?: number | undefined;
  /** Added to the scores of single tokens by id, -100 to 100; `-Infinity` forbids a token. */
  logitBias?: Record<number, number> | undefined;
  /** 0 to 2^53-1. The same seed gives the same reply on every machine. Default: a random one. */
  seed?: number | undefined;
  /** Ends the reply where one of these texts would come, without it; at most 64 texts of at most 1000 characters. Thinking is not searched. */
  stop?: string | readonly string[] | undefined;
  /**
   * Called while the prompt is read, not while it waits. In the phase `vision` images that are not known yet are looked at, `done` of `total` of their
   * tokens, now the one that is number `image` of `images` (videos count as one); in the phase `text` the prompt is read, `done` of `total` tokens, `cached` of which were known already. Phases may alternate. What an async
   * one rejects with is reported on the console.
   */
  onPrefill?: ((progress: { phase: 'vision' | 'text'; done: number; total: number; cached: number; image?: number; images?: number }) => void) | undefined;
  /** `background`: begins after all `normal` ones, lets go before them, and is remembered shorter. Default `normal`. */
  priority?: 'normal' | 'background' | undefined;
  /**
   * The text is JSON that is valid by this JSON Schema (2020-12, or the draft that `$schema` says: 4, 6, 7 or 2019-09): no token that would lead away from it is chosen,
   * and {@link Result.value} is what it says. Zod's schemas and others' that are a {@link StandardSchema} are taken as they are, TypeBox's are JSON Schemas. Properties come in the order in which the schema has them. What cannot be honoured is refused by name
   * (`use/schema`) before any work; so is what is no plain object (a Map, fields of a class: `use/param`), as JSON would pass over it. Of `schema`, `regex`, `grammar`, `json` and `choices` a reply has one. Thinking is free, and only then comes the text.
   * The model is not told of it: say in a message what you want, the schema too where its names do not explain themselves.
   */
  schema?: object | boolean;
  /**
   * The whole text is what this expression matches, as ECMAScript has it with the flag `u` (`\p{…}`: Unicode 17); `i`, `m`, `s` and modifiers (`(?i:…)`) count.
   * Refused are lookbehind, lookahead inside of what is repeated, backreferences, `\b` and `\B`, anchors inside what is repeated (`use/schema`), and sets of sets with the flag `v` (`use/param`).
   */
  regex?: string | RegExp | undefined;
  /** The whole text is what this grammar describes, in GBNF as llama.cpp writes it, from its rule `root` on. Tokens (`<think>`, `<[7]>`, `!<think>`) are refused. */
  grammar?: string | undefined;
  /** The text is JSON, an object or any other value. */
  json?: boolean | undefined;
  /** The text is one of these, at most 10,000. */
  choices?: readonly string[] | undefined;
  /**
   * Whether objects may have members that nobody asked for. Default false: where a schema lists `properties` and says nothing of others, replies and
   * arguments of calls have no others. One that speaks of them (`additionalProperties: true`, `patternProperties` ...) is kept as it is in any case.
   */
  openObjects?: boolean | undefined;
  /**
   * Refuses (`use/schema`) what of `schema`, or of the tools' `parameters`, would be passed over: unknown keywords, unknown formats, unknown dialects.
   * Else {@link Result.schemaNotes} tells of it.
   */
  strictSchema?: boolean | undefined;
  /**
   * Of JSON by `schema` or `json`: without white space (`compact`, the default unless what `continue` goes on with has some), or with some where JSON may
   * have it.
   */
  whitespace?: 'compact' | 'flexible' | undefined;
  /**
   * Also what the model thought of each token of the text, and of so many of the likeliest ones in its place, 0 to 20: {@link Result.logprobs}. Before
   * penalties, temperature and the rest; the same numbers on every machine.
   */
  logprobs?: number | undefined;
  /**
   * Whose reply it is, as a number below 2^32 that you give. What is known of a prompt is used for replies of the same scope alone, so that nobody
   * learns from `cachedTokens`, or from the time an answer takes, what people of another scope have asked. Default 0; a program that answers
   * several people gives each his own. Work beside the model (prompts, tokens of texts) is shared fairly between scopes.
   */
  cacheScope?: number | undefined;
}

/** Of {@link Model.complete} alone. */
export interface CompletionOptions extends CompleteOptions {
  /**
   * Also what the model thinks of each token of the prompt, and of so many of the likeliest ones in its place, 0 to 20: {@link Result.promptLogprobs}, and
   * an event before the text. The same numbers as {@link Model.logits} give. With `maxTokens: 0` nothing else is made. Nothing known of the prompt is used, so it takes as
   * long as the first time.
   */
  promptLogprobs?: number | undefined;
  /**
   * What comes behind the text, which is filled in between the prompt and this. Fails with `use/param` where the vocabulary has no tokens for that
   * (`<|fim_prefix|>`, `<|fim_suffix|>`, `<|fim_middle|>`); models that were not taught to fill in write what they like.
   */
  suffix?: string | undefined;
}

export interface ChatOptions extends CompleteOptions {
  /** Whether the model thinks before it answers, where its chat template knows the choice. Default: false; a model that always thinks does. */
  thinking?: boolean | undefined;
  /**
   * Keeps what the model has computed of the conversation (its keys and values) in the store under this name, a text of 1 to 256 bytes: read before the
   * reply, so that a page that was reloaded, or another process, goes on at once (`usage.cachedTokens` tells), and brought up to date after it, while
   * nothing else is to be done. Pass the whole conversation as ever: what of it is not there, is damaged or was another model's is read anew, and no
   * token depends on it. A model writes a tenth of a megabyte for each token (0.6B, `kv: 'f16'`). What is kept gives the conversation away to who has
   * the store and the model: {@link Model.forget} it with the conversation. Where nothing can be kept, or there is no room, the console says so.
   */
  keep?: string | undefined;
  /**
   * What the model may call, 128 tools at most. Schemas that cannot be honoured are refused by name (`use/schema`). Calls are in
   * {@link Result.toolCalls}; carry them out, add the message with the calls and one with each result, and ask again. `run` of `quern/run` does that.
   * With {@link CompleteOptions.schema} or its like a reply is calls, or a text of that form.
   */
  tools?: readonly Tool[] | undefined;
  /**
   * Whether the model calls: as it likes (`auto`, the default), not at all (`none`), or at least once before anything else but thinking (`required`, or
   * { name } of the one tool). With { names } it is told of all tools and may call these alone, once at least if `required`. A call is held to its
   * tool's schema from its first token on, without penalties; the rest of the reply is free.
   */
  toolChoice?: 'auto' | 'none' | 'required' | { name: string } | { names: readonly string[]; required?: boolean | undefined } | undefined;
  /** Whether a reply may have several calls. Default true; false: it ends behind the first one. */
  parallelToolCalls?: boolean | undefined;
  /**
   * Goes on with the last message, which is the assistant's and was cut off: the reply is what comes after it. What limits the text judges both together,
   * and {@link Result.value} is of both; a beginning that does not fit is `use/param`. Default: false.
   */
  continue?: boolean | undefined;
  /** Whether the model is told `Picture 1: `, `Video 1: ` before each, counted over the conversation. Default: false. */
  numberImages?: boolean | undefined;
  /**
   * What happens to a conversation that the context has no room for, with a fifth of it, or `maxTokens` where that is less, for the reply. `error`
   * (default): it fails with `use/context` where no token is left. `drop`: the oldest turns are left out, whole ones and two fifths of a context at
   * once; what the system says and the last question stay. {@link Result.dropped} and an event tell how many messages.
   */
  overflow?: 'error' | 'drop' | undefined;
}

/** A token, its text (a part of a character shows as U+FFFD), and the natural logarithm of its probability. `top`: the likeliest ones, best first. */
export interface Logprob {
  id: number;
  text: string;
  logprob: number;
  top: { id: number; text: string; logprob: number }[];
}

/** The same of a token of a prompt: how likely it was behind those before it. Of the first nothing is known: its `logprob` is null, its `top` empty. */
export type PromptLogprob = Omit<Logprob, 'logprob'> & { logprob: number | null };

/** What a finished reply is. `Value`: see {@link FromSchema}. */
export interface Result<Value = unknown> {
  text: string;
  /**
   * With {@link CompleteOptions.schema}, `json` or `choices`: what the text says (its type is `unknown` where it does not follow from the call). Undefined where it was cut off (`finishReason` is not `stop`, or a stop
   * text came), and without them. With a {@link StandardSchema}: what that makes of it, defaults and transformations included.
   */
  value?: Value | undefined;
  /** What a {@link StandardSchema} has against what the text says, as JSON Schema could not say it (`refine`); there is no `value` then. */
  issues?: readonly SchemaIssue[];
  /**
   * What of {@link CompleteOptions.schema}, or of the tools' `parameters`, says nothing by JSON Schema and was passed over, once each: unknown keywords,
   * formats and dialects, and what stands beside `$ref` in drafts up to 7. `rule` is the keyword. Absent where there is nothing to tell.
   */
  schemaNotes?: { rule: string; message: string }[];
  /** What the model wrote between `<think>` and `</think>`; empty when it did not think. */
  thinking: string;
  /** What the model has called of {@link ChatOptions.tools}; a call of no tool that there is is text. */
  toolCalls: ToolCall[];
  /** A call that the end has cut off (`finishReason` `length`, `context` or `aborted`), with as much of its arguments as was told; '' is not known yet. */
  unfinishedCall?: { id: string; name: string; text: string };
  /**
   * With {@link CompleteOptions.logprobs}: of each token of the text, those of a stop text included; of `complete` of each token that was written, and of
   * the one by which the model ended it.
   */
  logprobs?: Logprob[];
  /** With {@link CompletionOptions.promptLogprobs}: of each token of the prompt. Not there where the reply was stopped before. */
  promptLogprobs?: PromptLogprob[];
  /** With {@link ChatOptions.overflow} `drop`: how many of the oldest messages, those of the system aside, were left out. */
  dropped?: number;
  /** Which of {@link CompleteOptions.stop} has ended the reply; absent where none has. */
  stopText?: string;
  /**
   * `stop`: the model or a stop text ended it; `tool-calls`: so, behind calls. `length`: `maxTokens` did. `context`: it was full. `aborted`: `stop()` or
   * `break`.
   */
  finishReason: 'stop' | 'tool-calls' | 'length' | 'context' | 'aborted';
  usage: {
    /** Tokens of the prompt; `imageTokens` of them stand for images and videos, `cachedTokens` were known from earlier and not computed again. */
    promptTokens: number;
    imageTokens: number;
    cachedTokens: number;
    /** Tokens of the reply, `thinkingTokens` of them its thinking. */
    completionTokens: number;
    thinkingTokens: number;
  };
  timings: {
    /** Milliseconds before it was its turn, then those spent reading the prompt and writing, beside others. */
    waitMs: number;
    prefillMs: number;
    decodeMs: number;
    /** Speed of writing; 0 for fewer than two tokens. */
    tokensPerSecond: number;
  };
}

/**
 * A schema of a library that follows https://standardschema.dev and says itself as JSON Schema (`~standard.jsonSchema`, or a method `toJSONSchema()`): Zod 4,
 * ArkType 2, Valibot by `toStandardJsonSchema()`. What it says of its input a reply is held to; what its `validate` makes of that is the value.
 */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] }
      | Promise<{ readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] }>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** What a library's schema has against a value that its JSON Schema allows. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * The type of a value that is valid by a JSON Schema, or that a {@link StandardSchema} makes, as far as a type can say it: of a schema that stands in the call, or is `as const`. What it does not
 * understand (`$ref`, `not`, `if`) may be anything.
 */
export type FromSchema<Schema> =
  Schema extends false ? never
  : Schema extends StandardSchema<infer Output> ? Output
  : Schema extends { readonly static: infer Value; readonly params: unknown[] } ? Value      // TypeBox 0
  : Schema extends { readonly const: infer Value } ? Value
  : Schema extends { readonly enum: readonly (infer Value)[] } ? Value
  : Schema extends { readonly anyOf: readonly (infer One)[] } | { readonly oneOf: readonly (infer One)[] } ? FromSchema<One>
  : Schema extends { readonly type: readonly (infer Type)[] } ? OfType<Type, Schema>
  : Schema extends { readonly type: infer Type } ? OfType<Type, Schema>
  : Schema extends { readonly properties: object } ? OfType<'object', Schema>
  : unknown;

type OfType<Type, Schema> =
  Type extends 'string' ? string
  : Type extends 'number' | 'integer' ? number
  : Type extends 'boolean' ? boolean
  : Type extends 'null' ? null
  : Type extends 'array' ? (Schema extends { readonly items: infer Item } ? FromSchema<Item>[] : unknown[])
  : Type extends 'object' ? ObjectOf<Schema>
  : unknown;

type ObjectOf<Schema> = Schema extends { readonly properties: infer All }
  ? { [Name in keyof All as Name extends RequiredOf<Schema> ? Name : never]: FromSchema<All[Name]> }
    & { [Name in keyof All as Name extends RequiredOf<Schema> ? never : Name]?: FromSchema<All[Name]> }
  : Record<string, unknown>;

type RequiredOf<Schema> = Schema extends { readonly required: readonly (infer Name)[] } ? Name : never;

/** Options that have one more, from whose type that of the value follows. */
type Limited<Options, Name extends string, Value> = Given<Omit<Options, Name>> & { readonly [Key in Name]: Value };

/** Options of a reply that has no value. */
type Free<Options> = Given<Omit<Options, 'schema' | 'json' | 'choices'>> & { readonly schema?: null | undefined; readonly json?: false | null | undefined; readonly choices?: null | undefined } | null;

/**
 * A piece of a reply, in the order it is made. `dropped`: so many messages were left out. `prompt`: what is thought of it, where that is wanted. Of a call, the `index`-th of its reply, first that it comes, then its arguments as JSON in pieces (`delta`), then all
 * of it. One that never is whole comes as text as well. Every event has a `text`, which is empty where there is none to show.
 */
export type ReplyEvent =
  | { type: 'text'; text: string; logprobs?: Logprob[] }
  | { type: 'thinking'; text: string }
  | { type: 'prompt'; text: ''; logprobs: PromptLogprob[] }
  | { type: 'dropped'; text: ''; messages: number }
  | { type: 'tool-call-start'; text: ''; index: number; id: string; name: string }
  | { type: 'tool-call-delta'; text: ''; index: number; delta: string }
  | { type: 'tool-call'; text: ''; index: number } & ToolCall;

/**
 * A reply being made. The work starts at once, or as soon as `parallel` others let it, whether or not anybody reads; pieces that wait to be read are joined.
 * Read it one way: the reply itself (its text), `events` (thinking too), or a stream of bytes; `result` may be asked for in any case.
 *
 * Leaving a loop early (`break`, `return`, `throw`) and `stop()` end the work and keep what is there: `result` then has
 * `finishReason: 'aborted'`. With `signal` the reply fails instead.
 */
export interface Reply<Value = unknown> extends AsyncIterable<string> {
  /** Text, thinking and calls apart. */
  readonly events: AsyncIterable<ReplyEvent>;
  /** Settles when the reply ends. Asking for it marks no error as unhandled. */
  readonly result: Promise<Result<Value>>;
  /** Ends the work within 200 ms, while it waits, the prompt is read or text is written; others do not notice. Does nothing once the reply has ended. */
  stop(): void;
  /** Its text as bytes of UTF-8, a third way to read it: `new Response(reply.toReadableStream())`. Cancelling the stream is like leaving a loop. */
  toReadableStream(): ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** Sampling as a model card advises it. */
export interface Card {
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  /** Only where it is not 0. */
  readonly presencePenalty?: number;
}

/** A type of cache: its bytes for each token, and the largest context that fits `plan.limit`; 0 where the model cannot have it. */
export interface CacheChoice {
  readonly bytesPerToken: number;
  readonly largestContext: number;
}

/**
 * Facts about a loaded model: about the file, its dimensions, and how it runs here. `quern info --json` prints the same of a model
 * that is not loaded, by the headers of its files alone; it lacks `thinking`, `memory`, `work` and what only a running engine has (`threads`,
 * `variant`, `dots`, `address`, `memoryBytes`).
 */
export interface Info {
  /** Name, and licence with its name and address, as the file has them, or ''. Text from the file: show it as text. */
  readonly name: string;
  readonly license: string;
  readonly licenseName: string;
  readonly licenseLink: string;
  /** `gguf`, `safetensors` or `ajc1`. */
  readonly format: string;
  readonly architecture: string;
  /**
   * What the files do not say, or say otherwise: metadata keys with what they were taken to be. Older files have no `tokenizer.ggml.pre` (`qwen2` where the
   * vocabulary is like Qwen's), or another `general.architecture` (`qwen3` for a `qwen2` with norms of queries and keys). Mostly empty.
   */
  readonly assumed: Readonly<Record<string, string>>;
  /**
   * What the architecture decides: the marks of its conversations and the form of its calls, by the words that the package has for them, and whether it may
   * have a vision part.
   */
  readonly marks: string;
  readonly callForm: string;
  readonly takesVision: boolean;
  /** Sampling as the model card advises it: defaults of replies where the files advise nothing (`sampling`). */
  readonly card: { readonly plain: Card; readonly thinking: Card };
  /** Sampling as the files advise (`general.sampling.*`, generation_config.json): defaults of replies, before those of {@link CompleteOptions}. */
  readonly sampling: Readonly<{ temperature?: number; topP?: number; topK?: number; minP?: number; repeatPenalty?: number }>;
  readonly parameters: number;
  /** Those that work for one token: less than all where there are experts. */
  readonly activeParameters: number;
  readonly fileBytes: number;
  /** The weights of each type, by the type's name (`Q8_0`), and their bytes in the files. */
  readonly types: Readonly<Record<string, { readonly tensors: number; readonly parameters: number; readonly bytes: number }>>;
  readonly layers: number;
  readonly dim: number;
  /** Feed-forward size of the layers without experts; 0 where the file does not say it because there are none. */
  readonly ffnDim: number;
  /** Of a mixture of experts: how many a layer has, how many of them each token uses, and their feed-forward size. Else 0. */
  readonly experts: number;
  readonly expertsUsed: number;
  readonly expertDim: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly ropeTheta: number;
  /** By how much YaRN extends the context; 1: not at all. */
  readonly ropeFactor: number;
  /** Whether the embedding serves as output head too. */
  readonly tied: boolean;
  /**
   * There is no output head: the folder was saved for vectors, by a class like `Qwen3Model`, and says that the embedding is none. {@link Model.embed} works;
   * replies, logits and ranks by words fail with `model/unsupported`.
   */
  readonly headless: boolean;
  /** Columns of the logits. The first `tokens` of them stand for text, the rest is padding. */
  readonly vocabSize: number;
  readonly tokens: number;
  /** Ids that end a reply. */
  readonly endTokens: readonly number[];
  /** Ids that the model's files want before and behind a plain text (`complete`, `tokenize`, `embed`); a chat template writes its own. */
  readonly added: { readonly before: readonly number[]; readonly after: readonly number[] };
  /** Texts of the tokens that chat templates know by name, as far as the files have them. */
  readonly specialTokens: { readonly bos_token?: string; readonly eos_token?: string; readonly pad_token?: string; readonly unk_token?: string };
  /**
   * What the file says its vectors are made of, as GGUF numbers it: 3, the last token, is a model for vectors ({@link Model.embed}), 4 one for ranking
   * ({@link Model.rank}), -1: nothing is said. 1 is the mean of all tokens, 2 the first one; all else is treated as 3: every Qwen3 model can do
   * both, those that were made for it well. `classes`: 2 where a file that ranks has outputs for yes and no, else 0.
   */
  readonly pooling: -1 | 0 | 1 | 2 | 3 | 4;
  /**
   * What a sentence-transformers folder says of its vectors beside that (`modules.json`, `1_Pooling/config.json`; `described`: it says something): whether they
   * are normalised where {@link EmbedOptions.normalize} is not given, and what of it is not built here, or ''; {@link Model.embed} refuses that by its name.
   */
  readonly vectors: { readonly described: boolean; readonly normalize: boolean; readonly refused: string };
  readonly classes: number;
  /** `gpt2`: byte-level BPE. `scores`: pairs by their scores, of a .tokenizer file. */
  readonly tokenizer: string;
  /** Positions the model was made for, and positions a conversation may have here. */
  readonly contextLength: number;
  readonly contextSize: number;
  /** Whether the file has a chat template of its own; else ChatML is used. */
  readonly chatTemplate: boolean;
  /** Whether that template knows the `thinking` option. */
  readonly thinking: boolean;
  /** The kernels in use. */
  readonly variant: Variant;
  /**
   * How the kernels multiply codes, as a probe at the start found out: 'u8' (x86 with VNNI) and 's8' (ARM and newer x86) by one instruction that is
   * exact for whole bytes, 'u7' by one that is exact for 7 bits, 'i16' by way of 16 bits (no relaxed SIMD), 'none' one by one
   * (scalar). The numbers are the same with each.
   */
  readonly dots: 'u8' | 's8' | 'u7' | 'i16' | 'none';
  /** Threads in use. */
  readonly threads: number;
  readonly kv: 'f16' | 'q8' | 'f32';
  /** What was done to the weights while they were loaded. {@link Info.types} are those of the file. */
  readonly quantize: { readonly weights: Quantize; readonly embeddings: Quantize };
  /** Tokens read per step at most. */
  readonly chunk: number;
  /** Replies that are made side by side at most, and positions that they have room for together. */
  readonly parallel: number;
  readonly kvPositions: number;
  /** Bytes the engine needs once loaded. */
  readonly memoryBytes: number;
  /**
   * What was planned from the file's header, in bytes: packed weights, keys and values (of `kvPositions` positions), everything else, all of it,
   * and what may be taken; and for each type of `kv` what a context costs.
   */
  readonly plan: {
    readonly weights: number; readonly cache: number; readonly scratch: number; readonly total: number; readonly limit: number;
    readonly f16: CacheChoice; readonly f32: CacheChoice; readonly q8: CacheChoice;
  };
  /**
   * Bytes the engine holds, the most it ever held, what was planned, and the size of its wasm memory, as of the last finished call. `cache`: pages of
   * 32 positions that there are, that replies use, and that are remembered for later ones. `grammars`: bytes beside all that, which what replies are held
   * to has taken; 0 until the first of them.
   */
  readonly memory: {
    readonly used: number; readonly peak: number; readonly planned: number; readonly wasm: number; readonly grammars: number;
    readonly cache: { readonly pages: number; readonly used: number; readonly remembered: number };
  };
  /**
   * What was done since the load, as of the last finished call: steps, rows (tokens) that they computed for all replies, how often a reply let go of its
   * pages because there were too few, and rows computed again for that. `sizes`: how many of the steps had 1 row, 2, up to 4, 8, 16, 32, 64, and more.
   */
  readonly work: {
    readonly steps: number; readonly rows: number; readonly letGo: number; readonly recomputed: number; readonly sizes: readonly number[];
  };
  /** Bits of the engine's addresses. */
  readonly address: Address;
  /** How many files the model consists of, those that only describe it (`config.json`, a vocabulary) among them. */
  readonly files: number;
  /**
   * The model's vision part; null where it has none. Blocks of its encoder, their width and heads; the side of a patch in pixels, and how many patches on each
   * side are one token; after which blocks the language model's first layers get a look of their own (DeepStack); limits of an image and of a video's
   * frames together, the tokens of the largest image, and the memory that looking takes.
   */
  readonly vision: null | {
    readonly layers: number; readonly dim: number; readonly heads: number; readonly patch: number; readonly merge: number;
    readonly deepstack: readonly number[];
    readonly parameters: number;
    readonly fileBytes: number;
    readonly types: Readonly<Record<string, { readonly tensors: number; readonly parameters: number; readonly bytes: number }>>;
    readonly minPixels: number; readonly maxPixels: number; readonly minVideoPixels: number; readonly maxVideoPixels: number;
    readonly maxTokens: number;
    readonly scratchBytes: number;
  };
}

/** Sums over calls of the engine's operations. */
export interface Cost {
  readonly calls: number;
  readonly ms: number;
  /** Multiply-accumulates of products and attention. */
  readonly macs: number;
  /** Bytes of weights, keys and values, each counted once per call. */
  readonly bytes: number;
  /** How often all threads waited for each other; 0 with one thread. */
  readonly barriers: number;
}

export interface PhaseCost extends Cost {
  readonly tokens: number;
  /** In the order of their first calls. `name` says on what: `matmul Q8_0 [4096, 1024]` are the products of one input with 4096 rows. */
  readonly operations: ReadonlyArray<Cost & {
    readonly name: string;
    /** Milliseconds in each layer, and outside of them. */
    readonly layerMs: readonly number[];
    readonly outsideMs: number;
  }>;
}

/** Where the time goes. Steps in which each reply has a single token count as decoding, those in which some read and others write as mixed; vision counts visual tokens. */
export interface Profile {
  readonly prefill: PhaseCost;
  readonly decode: PhaseCost;
  readonly mixed: PhaseCost;
  readonly vision: PhaseCost;
  /** How many threads work now: fewer than there are, while the machine has no processors for them. */
  readonly threads: number;
  /** Microseconds of an empty barrier, measured at the call; 0 with one thread. */
  readonly barrierUs: number;
}

declare global {
  /** As in `esnext.disposable`, which not every project names. */
  interface SymbolConstructor { readonly asyncDispose: unique symbol }
}

/** A loaded model. Calls run side by side, and what comes of one never depends on the others. `await using` disposes of it. */
export interface Model {
  readonly info: Info;
  /**
   * Answers a message, or a whole conversation: pass all of it each time, what is known already is not computed again.
   *
   * The reply fails with `use/param`, `use/context` and `use/busy` (before any work), `model/nonfinite`, `mem/load`, `engine/*`.
   */
  chat<const Schema extends object | boolean>(messages: string | readonly Message[], options: Limited<ChatOptions, 'schema', Schema>): Reply<FromSchema<Schema>>;
  chat<const Choice extends string>(messages: string | readonly Message[], options: Limited<ChatOptions, 'choices', readonly Choice[]>): Reply<Choice>;
  chat(messages: string | readonly Message[], options?: Free<ChatOptions>): Reply<undefined>;
  chat(messages: string | readonly Message[], options?: Given<ChatOptions>): Reply;
  /** Continues a text, without any template but with the tokens of {@link Info.added}. Token ids are taken as they are. `thinking` of the result is empty. */
  complete<const Schema extends object | boolean>(
    prompt: string | ArrayLike<number>, options: Limited<CompletionOptions, 'schema', Schema>): Reply<FromSchema<Schema>>;
  complete<const Choice extends string>(prompt: string | ArrayLike<number>, options: Limited<CompletionOptions, 'choices', readonly Choice[]>): Reply<Choice>;
  complete(prompt: string | ArrayLike<number>, options?: Free<CompletionOptions>): Reply<undefined>;
  complete(prompt: string | ArrayLike<number>, options?: Given<CompletionOptions>): Reply;
  /**
   * Token ids of a text with those of {@link Info.added}, in which `<think>`, `<tool_call>` and their like are tokens and control tokens such as `<|im_end|>` are text; or of a
   * conversation with everything its template adds, as a reply to it is made from.
   */
  tokenize(input: string | Uint8Array | readonly Message[], options?: Given<PromptOptions>): Promise<number[]>;
  /** The text of token ids, special ones included. `use/param` for an id that does not exist. */
  detokenize(tokens: ArrayLike<number>, options?: Given<TextOptions & { bytes?: false | undefined }>): Promise<string>;
  /** The bytes of each token: a part of a character is no text. */
  detokenize(tokens: ArrayLike<number>, options: Given<TextOptions> & { readonly bytes: true }): Promise<Uint8Array<ArrayBuffer>[]>;
  /** How many tokens a text has, or a conversation with everything its template adds; images are measured, not looked at. */
  countTokens(input: string | readonly Message[], options?: Given<PromptOptions>): Promise<number>;
  /**
   * Scores of every possible next token after each of these tokens, or of those of a conversation: `[tokens, info.vocabSize]`, row by row. Made in the
   * background of replies.
   */
  logits(input: ArrayLike<number> | readonly Message[], options?: Given<PromptOptions>): Promise<Float32Array<ArrayBuffer>>;
  /**
   * Vectors of texts, by which texts that mean the same are near each other: the hidden state of the last token, cut to `dimensions`, then made as long as 1. A text
   * may be given as ids of tokens. Made behind all replies, many side by side; each is the same to the bit alone or among others. Models of the kind
   * Qwen3-Embedding want an `instruction` for queries and none for what is searched.
   *
   * `use/empty` for an empty list, `use/param`, `use/context` where the instruction alone fills the context, `model/unsupported` where the file wants another `pooling`.
   */
  embed(texts: string | readonly (string | ArrayLike<number>)[], options?: Given<EmbedOptions>): Promise<Vectors>;
  /**
   * How well documents answer a query, the best first: the model's yes as a share of yes and no, 0 to 1. Models of the kind Qwen3-Reranker were made for it.
   * A document that is too long loses its end. Fails as {@link Model.embed} does, with `use/context` where the query alone fills the context.
   */
  rank(query: string, documents: readonly string[], options?: Given<RankOptions>): Promise<Rank[]>;
  /** What the encoder makes of an image: how many tokens it is, in rows and columns, and the values of each, `[tokens, width]`. */
  look(image: ImageSource, options?: Given<TextOptions & { detail?: 'low' | 'auto' | 'high' | undefined; maxPixels?: number | undefined }>): Promise<Look>;
  /** The conversations that are kept in the model's store, used last first, once none is being written any more. */
  kept(options?: Given<CallOptions>): Promise<Kept[]>;
  /**
   * Forgets what is kept under a name, replies that are being made included; without a name all that is kept in the store. `storage/busy` while another
   * tab or process keeps it.
   */
  forget(name?: string | null, options?: Given<CallOptions>): Promise<void>;
  /** What the work since the load, or since the last call of this, has cost. Null unless loaded with `profile: true`. */
  profile(options?: Given<CallOptions>): Promise<Profile | null>;
  /** Ends the engine, once what is to be kept is written (5 seconds at most), and gives all its memory back. Always resolves; calls still pending fail with `engine/disposed`. */
  dispose(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** Of what is asked beside replies. */
export interface TextOptions extends CallOptions {
  /** Whose it is, as in {@link CompleteOptions.cacheScope}: who asks for much waits behind others. */
  cacheScope?: number | undefined;
}

/** How a conversation is written out, as in {@link ChatOptions}. */
export interface PromptOptions extends TextOptions {
  thinking?: boolean | undefined;
  tools?: readonly Tool[] | undefined;
  numberImages?: boolean | undefined;
  /** Whether the template begins the next reply behind the messages (`add_generation_prompt`). Default true; false for what has been said alone. */
  generationPrompt?: boolean | undefined;
  /** Whether the reply goes on with the last message, which is the assistant's. Default false. */
  continue?: boolean | undefined;
}

export interface RankOptions extends CallOptions {
  /** What the documents are wanted for, in a sentence, best in English. Default: "Given a web search query, retrieve relevant passages that answer the query". */
  instruction?: string | undefined;
  /** Whose texts they are, as in {@link CompleteOptions.cacheScope}. */
  cacheScope?: number | undefined;
  /** As of {@link EmbedOptions.onProgress}, of the documents. */
  onProgress?: ((progress: { done: number; total: number }) => void) | undefined;
}

export interface EmbedOptions extends CallOptions {
  /** What the texts are queries for, in a sentence: `Given a question, find notes that answer it`. Default: none, as for documents. */
  instruction?: string | undefined;
  /** Numbers of a vector, the first ones of all; at most, and by default, `info.dim`. */
  dimensions?: number | undefined;
  /** Whether vectors are made as long as 1, so that their dot products are cosines. Default: as the model's files say ({@link Info.vectors}), mostly true. */
  normalize?: boolean | undefined;
  cacheScope?: number | undefined;
  /** Called at most about ten times a second while texts are read, and with the last of them: `done` of `total` texts. */
  onProgress?: ((progress: { done: number; total: number }) => void) | undefined;
}

export interface Vectors {
  /** One for each text, in their order, each with a buffer of its own. */
  vectors: Float32Array<ArrayBuffer>[];
  /** Tokens that were read, known ones included. */
  tokens: number;
  /** The texts, by their places, that had more tokens than the context and lost their ends. */
  truncated: number[];
}

export interface Rank {
  /** Of the document, in the list. */
  index: number;
  score: number;
  /** Whether it was too long and lost its end. */
  truncated?: true;
}

/** An image as the language model gets it: of each token what stands for it, and what its first layers get in addition. */
export interface Look {
  tokens: number;
  rows: number;
  columns: number;
  width: number;
  values: Float32Array<ArrayBuffer>;
  /** The size of an image of more than 16 million pixels that was made smaller while it was decoded, to twice what the model sees; null: none. */
  reduced: { width: number; height: number } | null;
}

/** What this browser can do. Needed are WebAssembly with SIMD and module workers: Chrome 93, Firefox 114, Safari 16.4. */
export interface Support {
  /** Whether models can run here at all. */
  ok: boolean;
  /** Why not; or why only with one thread. Empty when all is well. */
  reason: string;
  webassembly: boolean;
  simd: boolean;
  relaxed: boolean;
  /** Whether several threads can be used. */
  threads: boolean;
  /** Whether the page is cross-origin isolated (always true in Node). */
  isolated: boolean;
  /** The variant that `load` would choose, or null. */
  variant: 'simd' | 'relaxed' | null;
  /** The number of threads that `load` would choose. */
  defaultThreads: number;
  /** Bytes of memory a model may use here at most. */
  maxMemory: number;
}

export function support(): Support;

/**
 * Codes of {@link QuernError}. The part before the slash says who can help: `model` another file, `net` the connection or the
 * server, `storage` other tabs or more cacheScope, `mem` a smaller model or context, `env` another browser or server configuration, `engine` load again, `image` another image,
 * `use` the calling code.
 */
export type ErrorCode =
  | 'model/format' | 'model/unsupported' | 'model/inconsistent' | 'model/nonfinite' | 'model/integrity'
  | 'net/offline' | 'net/http' | 'net/unreachable' | 'net/stalled' | 'net/truncated' | 'net/changed' | 'net/range'
  | 'storage/quota' | 'storage/unavailable' | 'storage/busy' | 'storage/corrupt'
  | 'mem/plan' | 'mem/load' | 'mem/kv'
  | 'env/simd' | 'env/csp' | 'env/worker' | 'env/version' | 'env/canvas'
  | 'engine/trap' | 'engine/hung' | 'engine/lost' | 'engine/disposed'
  | 'image/decode' | 'image/size'
  | 'use/param' | 'use/busy' | 'use/context' | 'use/empty' | 'use/schema';

export class QuernError extends Error {
  constructor(code: ErrorCode, message: string, options?: {
    phase?: QuernError['phase'] | undefined; detail?: Record<string, unknown> | undefined; retryable?: boolean | undefined; cause?: unknown;
  });
  readonly name: 'QuernError';
  /** Stable, for programs. */
  readonly code: ErrorCode;
  /** What to do about it, a sentence for people; may be empty. */
  readonly hint: string;
  /** What was going on. */
  readonly phase: 'start' | 'load' | 'call';
  /** Whether the same call may succeed later without any change. */
  readonly retryable: boolean;
  /**
   * Numbers and names of the case: `rule` and `offset` (model/*), `status` (net/http), `limit` and `found` (use/context), `param` (use/param), and of a name that
   * is none here also `known`, those that are.
   */
  readonly detail: Readonly<Record<string, unknown>>;
  /** All of it, the message too, for a log; of the cause its text. */
  toJSON(): {
    name: 'QuernError'; code: ErrorCode; message: string; hint: string; phase: QuernError['phase']; retryable: boolean; detail: Readonly<Record<string, unknown>>; cause?: string;
  };
}
