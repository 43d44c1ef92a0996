// SPDX-License-Identifier: MIT

/**
 * quern runs Qwen language models from GGUF files on the visitor's own CPU, in a web page or in Node.
 *
 * ```js
 * import { load } from 'quern';
 * const model = await load('https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf');
 * for await (const text of model.chat('Hi')) out.append(text);
 * ```
 *
 * Every failure is a {@link QuernError}, or the `signal`'s reason (an `AbortError` by default) when you aborted. Every
 * promise settles. A request to a server that does not answer fails within two minutes (`net/stalled`). A download that
 * breaks off or stalls is resumed automatically; it fails with a `net/*` error after five silences of at most half a
 * minute each.
 */

/**
 * Where a model comes from:
 *
 * - a URL, or in Node also a path or a `file:` URL;
 * - a picked or dropped file;
 * - a file of a repository: {@link Repository}, or for short `hf:OWNER/REPO/FILE@REVISION`, or by its type
 *   `hf:OWNER/REPO:Q8_0`.
 *
 * For a split model, name the first part (`…-00001-of-00003.gguf`), or give all its files in an array, in any order.
 * Arrays also work for the files of a Hugging Face folder (safetensors and JSON; other files are ignored) and for a
 * qwen3.c checkpoint with its `.tokenizer` file. In Node the path of the folder or of the checkpoint is enough.
 *
 * A folder on a server is an address that ends in a slash, the page of a repository on Hugging Face, or a repository
 * without a file. All its safetensors files are stored and listed as one model.
 *
 * If such an array or folder has `tokenizer.json`, `chat_template.jinja` or `tokenizer_config.json`, or
 * `generation_config.json` beside a GGUF file, they replace the file's own vocabulary, chat templates and end tokens.
 * Picked files are recognized by their names, and by their folders (`webkitRelativePath`) if there are folders below:
 * only files beside the weights count, and those in `additional_chat_templates/` and `1_Pooling/` there.
 */
export type Source = string | URL | Blob | readonly Blob[] | Shown<'FileList'> | Repository;

/**
 * A file in a repository on Hugging Face, or on a mirror with the same addresses. Without `file` it is the whole folder
 * of the repository.
 */
export interface Repository {
  /** For example `Qwen/Qwen3-0.6B-GGUF`. */
  repo: string;
  /** Name of the file in the repository, with its folders. */
  file?: string | undefined;
  /**
   * Selects the GGUF file whose name has this type (`Q8_0`, `Q4_K_M`), with all its parts, instead of a file name. The
   * server is asked for the name, unless the model is stored.
   */
  type?: string | undefined;
  /** A branch, a tag or, best, a commit. Default `main`. */
  revision?: string | undefined;
  /** Address of the server. Default `https://huggingface.co`. */
  endpoint?: string | undefined;
}

export interface Progress {
  /**
   * `download`: bytes arrive over the network. `load`: bytes are read from a local file; also the phase of the last
   * event of every load.
   */
  phase: 'download' | 'load';
  /** Bytes read so far from the network or the store. Never decreases. */
  loaded: number;
  /** Total number of bytes; 0 while it is unknown. */
  total: number;
  /**
   * Whether the whole model comes from the store. If so, no request is made, unless a stored part turns out to be
   * damaged.
   */
  cached: boolean;
  /**
   * Only present while nothing arrives because a request failed (a busy server, a broken connection) and will be
   * repeated automatically. `ms` is the time until then in milliseconds; null means as soon as the device is online
   * again. `code` and `message` describe the failure as a {@link QuernError} does.
   */
  waiting?: { ms: number | null; code: string; message: string };
}

/** Which compiled kernels to use. By default the best available variant is chosen. */
export type Variant = 'scalar' | 'simd' | 'relaxed';

/** A graphics device that computes, as WebGPU describes it. */
export interface Gpu {
  readonly vendor: string;
  readonly architecture: string;
  readonly description: string;
  /**
   * Whether the device has passed every case of the trial. If false, either its kernels are the fast ones
   * ({@link LoadOptions.gpu}), or it makes numbers below 1.2e-38 zero; whatever has none of these is then the same to
   * the bit.
   */
  readonly exact: boolean;
  /**
   * Present if the device was lost after the load and the processor has gone on: replies that were under way, with the
   * same text, and all that was asked for later. `info.backend` is 'cpu' then, from the next answer on.
   */
  readonly lost?: true;
}

/** Type to which weights are converted while they are loaded. */
export type Quantize = 'none' | 'q8' | 'q4';

/** Width of the engine's addresses in bits. */
export type Address = 32 | 64;

/** Options as a caller may give them: null means the same as not given. */
export type Given<Options> = { [Name in keyof Options]: Options[Name] | null | undefined } | null;

export interface LoadOptions {
  /** Aborts the load at any point. An aborted load leaves nothing behind. */
  signal?: AbortSignal | undefined;
  /**
   * Called at most about ten times a second, and once at the very end with `loaded === total`. An exception that it
   * throws ends the load; a rejection of an async callback is reported on the console.
   */
  onProgress?: ((progress: Progress) => void) | undefined;
  /**
   * Number of positions (tokens) that a conversation may have, including the reply; at most the model's own limit.
   * Memory for all of them is allocated at once. Default: 4096, or as many as fit if these do not, but at least 512. A
   * size that does not fit is refused (`mem/plan`) before the file is downloaded, and `detail.contextSize` tells which
   * size would fit.
   */
  contextSize?: number | undefined;
  /**
   * Number of replies that are generated at the same time, 1 to 16. Default 4. Up to 64 more may wait, at most 32 of
   * them in the background. The text of a reply never depends on other replies. Each reply may use the whole context as
   * long as there are free positions: see `kvPositions`. Of a model with a state ({@link Info.stateBytes}) two replies
   * are generated at the same time, and four with `kvPositions: 4 * contextSize`.
   */
  parallel?: number | undefined;
  /**
   * Number of positions that all replies share, at least `contextSize`, which is the default. Unused positions remember
   * earlier conversations. When positions run short, the youngest reply gives up its own and continues later with the
   * same text. Twice the context allows two replies of full length at the same time.
   */
  kvPositions?: number | undefined;
  /**
   * Number of remembered states, 0 to 64, for models that have a state beside the KV cache; each takes
   * {@link Info.stateBytes}. A reply continues from a remembered state: after the system prompt, before the last
   * question, or after the prompt. Default 3, enough for one conversation, or for two in turn; fewer if memory is short.
   * Other models ignore it.
   */
  snapshots?: number | undefined;
  /**
   * Whether tokens are drafted while a reply is written: by the model, if its file has a block for it (MTP, `nextn`,
   * {@link Info.drafts}), else by looking up what followed the newest tokens before, in the prompt or the reply (not in
   * Qwen3.5). A right draft is a token for a part of its price; a wrong one costs time only: the text is the same to the
   * letter. Drafting stops while it does not pay. Where a format or a call leaves only one way to go on (names of
   * members, quotes), that text is drafted. Default true; false saves the block's memory, or 8 bytes for each token of the context.
   */
  drafts?: boolean | undefined;
  /**
   * A smaller model of the same vocabulary (such as Qwen3-0.6B for Qwen3-8B), which drafts tokens where looking up finds
   * none. The text is the same to the letter. It is loaded first, into a worker of its own, with the same options but
   * those of other files (`headers` are not sent for it), and takes its memory from `memoryLimit`; `onProgress` tells of
   * both. It reads each prompt too, a little at a time after the reply has begun, so it pays for long replies, if it is
   * much smaller and often right; drafting stops while it does not. Models with a state (Qwen3.5) have no draft model,
   * nor are they one.
   */
  draft?: Source | undefined;
  /**
   * Most bytes of the store that conversations saved by {@link ChatOptions.save} may take together. Default 2 GiB. To
   * make room for a new conversation, the least recently used ones are deleted; of a conversation that is larger than
   * the limit only the beginning is saved. 0 saves none.
   */
  saveMaxBytes?: number | undefined;
  /**
   * Bytes of memory that may be used. Default: what the browser grants and the device has, as far as this is known.
   * Constrained replies (a schema, tool calls) need a memory of their own, at most 160 MiB and about 20 MB at first,
   * out of what {@link Info.memory} `wasm` leaves of the limit. If that much is not left, the first such reply fails
   * with `mem/plan`.
   */
  memoryLimit?: number | undefined;
  /**
   * Width of the engine's addresses in bits. Default: 32, or 64 if the model needs more than 4 GiB (up to 16) and the
   * browser supports 64. An explicit value that is not supported fails with `env/simd`.
   */
  address?: Address | undefined;
  /**
   * Number of threads, 1 to 64. Default: the number of processors, at most 8. Only one is used if the page is not
   * cross-origin isolated or threads do not start. While the machine has no free processors for all threads, fewer of
   * them work, which is faster then.
   */
  threads?: number | undefined;
  /**
   * Type of the numbers in the KV cache. `f16` (default) takes half the memory of `f32`, and `q8` (8 bits and one scale
   * for every 32 numbers) 9/16 of that of `f16`; replies with `q8` differ slightly. `q8` needs heads with a multiple of
   * 32 columns (otherwise `use/param`).
   */
  kv?: 'f16' | 'q8' | 'f32' | undefined;
  /**
   * Type to which the weights are converted while they are loaded. Default `none`: as stored.
   *
   * `q8` makes exactly the blocks of a Q8_0 GGUF file, `q4` those of a Q4_0 file, so memory and speed are the same as
   * with such a file; if the source is a file of floats, the logits are equal to the bit. Weights that are quantized
   * already are decoded first, which loses more accuracy than a file of that type made from floats. No weight becomes
   * larger: a weight with as few bits stays as it is, and so do vectors, routers, rows whose length is not a multiple
   * of 32, weights of quantized folders and those of qwen3.c.
   *
   * `auto` chooses `none` if the model then fits into the available memory (64-bit addresses included), with the
   * smallest default context if necessary; else `q8`; else `q4`. {@link Info.quantize} tells which one was chosen. An
   * object sets the types of the layers' weights and of the embeddings (with the output head) separately; a missing one
   * is `none`. `{ weights: 'q4', embeddings: 'q8' }` costs less accuracy.
   */
  quantize?: Quantize | 'auto' | { weights?: Quantize | null | undefined; embeddings?: Quantize | null | undefined } | undefined;
  /**
   * Request headers for the download, for example `{ Authorization: 'Bearer …' }` for a gated or private repository.
   */
  headers?: Record<string, string> | Headers | undefined;
  /**
   * Whether `headers` may also be sent to another origin that the server redirects to (Authorization and Cookie never
   * are). Default false: they are left out there. A page cannot see where a redirect leads, so in a page a redirect
   * with headers other than these two is refused (`use/param`).
   */
  forwardHeaders?: boolean | undefined;
  /**
   * Where a model from the network is stored, so that it is downloaded only once. Every chunk is stored while the model
   * is loaded, and verified before it is used again. An interrupted download is resumed; only damaged chunks are
   * fetched again. `true` (default) is the browser's own store (OPFS), or in Node the user's cache folder. Other
   * choices are a path of another folder (Node only) and a {@link Store}. If nothing can be stored, or there is no
   * room, the load continues without the store and says so on the console.
   */
  store?: boolean | string | Store | undefined;
  /**
   * Expected SHA-256 of the file in hexadecimal digits. For a split model or a folder, one for each file in the order
   * in which they are read, with that of the projector last. If it differs, the load fails with `model/integrity` and
   * nothing is stored.
   */
  sha256?: string | readonly string[] | undefined;
  /**
   * The vision part of the model. For a GGUF model it is the projector, a further file (`mmproj-….gguf`), which is
   * stored, counted and verified together with the model's own. A Hugging Face folder has both: `true` (default) reads
   * the vision part, `false` leaves it out and saves its memory. Without a vision part a model accepts text only
   * (`info.vision` is null).
   */
  vision?: Source | boolean | undefined;
  /** How images are read; see {@link VisionOptions}. */
  visionOptions?: Given<VisionOptions> | undefined;
  /** Kernels to use. A variant that this machine cannot run is an error (`env/simd`), never a silent fallback. */
  variant?: Variant | undefined;
  /**
   * What computes: the processor ('cpu', the default) or a graphics device by WebGPU, which gives the same text.
   * 'webgpu' fails with `env/gpu` where it cannot be had; 'auto' takes the processor then, and also where the device is
   * software or not exact. On a device `threads`, `variant` and `address` have no effect. In Node the package `webgpu`
   * must be installed; Deno needs --unstable-webgpu. If the device is lost later, the model is loaded again for the
   * processor, and everything goes on there: see {@link Gpu.lost}.
   */
  backend?: 'cpu' | 'webgpu' | 'auto' | undefined;
  /**
   * Kernels of the graphics device. 'exact' (default) ones give the processor's bits, and devices that do not are
   * refused. 'fast' ones leave rounding and order to the device: its text may differ from that of other devices, and
   * conversations that it has saved are read again elsewhere, as it reads again what others have saved. Without effect
   * where the processor computes.
   */
  gpu?: 'exact' | 'fast' | undefined;
  /**
   * Most tokens of prompts that one step reads, 1 to 1024, all prompts together. Default 64. Results do not depend on
   * it.
   */
  chunk?: number | undefined;
  /**
   * Whether to measure the cost of each operation for {@link Model.profile}. Default false, which costs nothing; a page
   * fetches the engine's full build for it.
   */
  profile?: boolean | undefined;
  /**
   * Address of `worker.js`, for bundlers that do not follow `new URL(…, import.meta.url)`. The address names code that
   * will run: never take it from an untrusted source.
   */
  workerUrl?: string | URL | undefined;
  /**
   * Address of the wasm file, for the same reason as `workerUrl`. It must be the file of the variant in use:
   * `quern-relaxed-text.wasm` and so on for GGUF models in one file, without vision, `profile` and the weight types IQ1
   * to IQ3; the files without `-text` work for all models. `grammar.wasm`, which constrained replies need, is expected beside it.
   */
  wasmUrl?: string | URL | undefined;
}

/**
 * Limits of images and videos. An image costs one token per 1,024 pixels, a video one per 1,024 pixels of every two
 * frames, and encoding them takes seconds. Larger images are reduced and smaller ones enlarged, nearly keeping their
 * shape: sides become multiples of 32.
 */
export interface VisionOptions {
  /**
   * Most pixels of an image. Default 262,144 (256 tokens), or 1,048,576 with `detail: 'high'`. Memory for encoding is
   * allocated for this size.
   */
  maxPixels?: number | undefined;
  /** Least pixels of an image; smaller images are enlarged. Default: the model's own limit, 65,536. */
  minPixels?: number | undefined;
  /** Most pixels of all frames of a video together. Default 524,288 (256 tokens). */
  maxVideoPixels?: number | undefined;
  /** Least pixels of all frames of a video together. Default: the model's own limit, 4,096. */
  minVideoPixels?: number | undefined;
  /** Most frames that are taken from a video, 2 to 768. Default 16. */
  maxFrames?: number | undefined;
  /**
   * Bytes of memory for encoded images and videos, so that they need not be encoded again after they lost their place
   * in the context. Default 64 MiB. Each `cacheScope` has entries of its own; when the memory is full, the scope with
   * the most bytes gives up its oldest entry.
   */
  mediaCacheBytes?: number | undefined;
  /** Most pixels of an image or a frame before it is reduced. Default 100,000,000, the most that can be read at all. */
  maxImagePixels?: number | undefined;
  /**
   * Most images of a conversation; each frame that is encoded counts as one. Default: as many as messages may contain.
   */
  maxImages?: number | undefined;
  /**
   * Bytes of memory for all images that are decoded at the same time. Further images wait; a single image that needs
   * more is refused (`image/size`). Default 2 GiB.
   */
  imageMemoryBytes?: number | undefined;
}

/**
 * Loads a model. A failed or aborted load leaves nothing behind and may be repeated.
 *
 * Rejects with `model/*` (the file), `net/*` (the download), `mem/*`, `env/*` (this browser), `use/param`, or the
 * signal's reason.
 */
export function load(source: Source, options?: Given<LoadOptions>): Promise<Model>;

/** A model in the store, complete or in part. */
export interface StoredModel {
  /**
   * Address of the model without a signature. It can be passed as a source again. If the address has another query,
   * which may be secret, a hash replaces the query (`…#query=…`): such an id finds, loads and removes the stored model,
   * but cannot be downloaded from.
   */
  id: string;
  /** The same as `id`. */
  url: string;
  /** Name of the (first) file. */
  name: string;
  /** Number of files. */
  files: number;
  /** Bytes of all files; 0 while unknown. */
  size: number;
  /** Bytes that are stored. */
  loaded: number;
  /** Whether all bytes are stored. */
  complete: boolean;
  /** When the model was last loaded completely, in milliseconds since 1970; 0 if never. */
  lastUsed: number;
  /**
   * Address of the projector that is stored with the model, the last of its files. It can be passed as `vision` again.
   */
  vision?: string;
}

export interface CacheOptions {
  /** The store, as in {@link LoadOptions.store}. */
  store?: true | string | Store | undefined;
}

export interface DownloadOptions extends CacheOptions {
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
  headers?: Record<string, string> | Headers | undefined;
  forwardHeaders?: boolean | undefined;
  sha256?: string | readonly string[] | undefined;
  /** A projector to store with the model. */
  vision?: Source | boolean | undefined;
  /**
   * Files of this machine that are stored as those of the source, in their order, the projector's last; nothing is
   * requested. The source is then any address, such as `https://this-device.invalid/NAME.gguf`, by which `load` finds
   * them.
   */
  files?: Blob | readonly Blob[] | undefined;
  workerUrl?: string | URL | undefined;
  wasmUrl?: string | URL | undefined;
}

/** The models that are stored on this machine. Every method rejects with `storage/*` where nothing can be stored. */
export interface Models {
  /** Lists the stored models, the most recently used first. */
  list(options?: Given<CacheOptions>): Promise<StoredModel[]>;
  /**
   * Tells whether a model is stored completely, with the projector if one is named, so that `load` needs no network.
   */
  has(source: Source, options?: Given<CacheOptions & { vision?: Source | boolean | undefined }>): Promise<boolean>;
  /**
   * Downloads a model, or the missing rest of it, without loading it. If aborted, it keeps the bytes that have arrived.
   * If another tab or process is downloading the model, that download is followed; if it stores nothing for half a
   * minute, `storage/busy`. Other errors: `net/*`, `model/integrity`.
   */
  download(source: Source, options?: Given<DownloadOptions>): Promise<StoredModel>;
  /**
   * Removes a model, by its source or id. `storage/busy` while the model is being downloaded or loaded. Models in use
   * are not affected.
   */
  remove(source: Source, options?: Given<CacheOptions>): Promise<void>;
  /** Lists the saved conversations of a store, as {@link Model.saved} does, without a model. */
  saved(options?: Given<CacheOptions>): Promise<SavedConversation[]>;
  /**
   * Deletes saved conversations, as {@link Model.forget} does, without a model. A reply in progress under this name may
   * save the conversation again afterwards.
   */
  forget(name?: string | null, options?: Given<CacheOptions>): Promise<void>;
  /**
   * Tells how many bytes are stored (in a browser by everything of this origin), how many may be, and whether the
   * browser has promised not to delete them.
   */
  usage(options?: Given<CacheOptions>): Promise<Usage>;
  /**
   * Asks the browser for that promise; some browsers ask their user. `load` and `download` do so once, when the first
   * download begins.
   */
  persist(options?: Given<CacheOptions>): Promise<boolean>;
}

/** A saved conversation, whichever model saved it. Its name is a text chosen by the caller: show it as text. */
export interface SavedConversation {
  name: string;
  /** How many tokens of the conversation are saved, in whole pages of 32, and how many bytes they take. */
  tokens: number;
  bytes: number;
  /** When the conversation was last used, in milliseconds since 1970; 0 if unknown. */
  date: number;
}

export const models: Models;

/**
 * Where models and conversations are stored: files with short names of lower-case letters, digits, dots and dashes, and
 * locks.
 *
 * The engine's worker uses a store of your own over a port, so its methods run where you created it. Each method may
 * return a promise or the value itself. Nothing has to be atomic or flushed: stored bytes are verified before use. If a
 * call throws, answers with anything other than described here, or does not answer within 15 seconds, the load continues
 * without the store. An error named `QuotaExceededError` means that there is no room.
 */
export interface Store {
  /** Returns the names of all files. */
  list(): string[] | Promise<string[]>;
  /**
   * Returns the bytes of a (small) file, or null if there is none. The bytes are transferred with their buffer: return
   * a copy if you keep them.
   */
  read(name: string): Uint8Array | null | Promise<Uint8Array | null>;
  /**
   * Opens a file. With `write` it is opened for writing too, and created if it does not exist; otherwise the result is
   * null for a missing file. Others can read and remove files that are open.
   */
  open(name: string, options: { write: boolean }): StoreFile | null | Promise<StoreFile | null>;
  /** Removes a file if it exists. */
  remove(name: string): void | Promise<void>;
  /**
   * Makes the caller the only holder of a name among all users of the store, until the returned function is called or
   * the holder is gone. Returns null if another one holds the name and `wait` is false. Rejects when the signal aborts.
   */
  lock(name: string, options: { wait: boolean; signal?: AbortSignal }): (() => void) | null | Promise<(() => void) | null>;
  /** Returns the bytes that are stored, the bytes that may be stored, and whether they are safe from deletion. */
  usage(): Usage | Promise<Usage>;
  /** Asks that stored bytes be safe from deletion. */
  persist?(): boolean | Promise<boolean>;
}

export interface Usage {
  /** Bytes that are stored. */
  used: number;
  /** Bytes that may be stored. */
  quota: number;
  /** Whether stored bytes are safe from deletion. */
  persisted: boolean;
}

/** An open file. */
export interface StoreFile {
  size(): number | Promise<number>;
  /** Fills `target` with bytes from the offset `at` on, as far as there are any. @returns the number of bytes read */
  read(at: number, target: Uint8Array): number | Promise<number>;
  /**
   * Writes bytes at the offset `at`; a gap before it becomes zeros.
   * @returns the number of bytes written, which may be fewer
   */
  write(at: number, bytes: Uint8Array): number | Promise<number>;
  truncate(size: number): void | Promise<void>;
  flush(): void | Promise<void>;
  close(): void | Promise<void>;
}

/**
 * An image. A string is its address (`https:`, `data:`, `blob:`; in Node also a path), which is fetched without
 * cookies. Pixels are 8 bits per channel, RGB or RGBA depending on their number. Elements of a page are read and copied
 * when the call is made, so the caller may change them afterwards.
 *
 * Formats are PNG, JPEG, WebP, GIF, BMP and AVIF, as far as the browser decodes them; Node decodes PNG and BMP itself,
 * JPEG with `jpeg-js` installed, and all of them with `sharp`. EXIF orientation is applied, transparent pixels are
 * drawn on white, and an animation counts as its first image. Limits are 64 MiB, 16,384 pixels per side and 100 million
 * pixels in all.
 */
export type ImageSource = Blob | URL | string | PixelSource | Shown<'ImageBitmap' | 'HTMLImageElement' | 'HTMLCanvasElement' | 'OffscreenCanvas' | 'VideoFrame'>;

/** Types of a page, by name: `never` in projects without the DOM types. */
type Shown<Names extends string> = { [Name in Names]: typeof globalThis extends Record<Name, { prototype: infer Thing }> ? Thing : never }[Names];

/** Pixels in rows from the top, without gaps. An `ImageData` is one. */
export interface PixelSource {
  readonly data: Uint8Array | Uint8ClampedArray;
  readonly width: number;
  readonly height: number;
}

/**
 * A video: something a page can play (a file, an address, a `<video>`), from which frames are taken, two per second by
 * default; or its frames one by one, which are all used unless `sample` is true. Node accepts frames only. The time of
 * each frame follows from `fps` (default 24), or from `timestamps` in seconds.
 */
export type VideoSource = Blob | URL | string | Shown<'HTMLVideoElement'>
  | { frames: readonly ImageSource[]; fps?: number | undefined; timestamps?: readonly number[] | undefined; sample?: boolean | undefined };

/** A part of a message. Images and videos may be in messages of the user and of tools, at most 64 in a conversation. */
export type Part =
  | { type: 'text'; text: string }
  | {
    type: 'image'; image: ImageSource;
    /**
     * Resolution at which the image is read: up to 65,536 pixels (`low`), 262,144 (`auto`, the default) or 1,048,576
     * (`high`), unless {@link VisionOptions} set other limits.
     */
    detail?: 'low' | 'auto' | 'high' | undefined;
    /** Most pixels, up to the limit in {@link VisionOptions}, or 1,048,576. */
    maxPixels?: number | undefined;
  }
  | {
    type: 'video'; video: VideoSource;
    /** Frames taken per second. Default 2. */
    fps?: number | undefined;
    maxFrames?: number | undefined;
    /** Most pixels of all frames together. */
    maxPixels?: number | undefined;
  }
  | { type: 'image_url'; image_url: string | { url: string; detail?: 'low' | 'auto' | 'high' | undefined } };

export interface Message {
  /** A `tool` message is the result of a call; it follows the assistant's message with that call. */
  role: 'system' | 'user' | 'assistant' | 'tool';
  /**
   * Plain text, or parts; only messages of the user and of tools may have images and videos. Special tokens in the text
   * (`<|im_end|>`, `</think>`) stay text.
   */
  content: string | readonly Part[];
  /** Of an assistant's message: its thinking, as in {@link Result.thinking}. */
  thinking?: string | null | undefined;
  /**
   * `thinking` under the names that other programs use. The first one present counts, in the order `reasoning_content`,
   * `thinking`, `reasoning`.
   */
  reasoning_content?: string | null | undefined;
  reasoning?: string | null | undefined;
  /** Of an assistant's message: its calls, as in {@link Result.toolCalls}. The arguments may also be JSON text. */
  toolCalls?: readonly { id: string; name: string; arguments: object | string }[] | undefined;
  /** Of a tool's message: the id of the call that it answers. The model gets results in the order of their calls. */
  toolCallId?: string | undefined;
  /**
   * `toolCalls` and `toolCallId` in the form of OpenAI's API. Fields in which other programs put further content
   * (`images`, `name`) are refused by name.
   */
  tool_calls?: readonly { id: string; type?: 'function' | undefined; function: { name: string; arguments: object | string } }[] | null | undefined;
  tool_call_id?: string | undefined;
}

/** A function that the model may call. Text in tools, calls and results never becomes a special token. */
export interface Tool {
  /** 1 to 64 letters, without spaces, quotes, backslashes and control characters. */
  name: string;
  description?: string | undefined;
  /**
   * JSON Schema of the arguments (an object, closed as in {@link CompleteOptions.openObjects}), or a
   * {@link StandardSchema} (the model writes its input; `run` gives its output to `execute`). Without `properties`, or
   * without a schema, the tool takes no arguments.
   */
  parameters?: object | undefined;
  /** `parameters` under the name that MCP and the AI SDK use. A tool has one of the two. */
  inputSchema?: object | undefined;
  /**
   * The whole tool as JSON, exactly as the chat template shall see it: `{"type": "function", "function": {"name": …}}`
   * with the numbers, the order and the further members that its author wrote. By default it is made from the other
   * fields.
   */
  json?: string | undefined;
}

/** A call that the model has written. It has not been run: see `quern/run`. */
export interface ToolCall {
  /** Random id, to be repeated in the message with the result. */
  id: string;
  name: string;
  arguments: Record<string, any>;
}

export interface CompleteOptions {
  /**
   * Stops the work within 200 ms, also while the reply waits or the prompt is read. The reply then fails with the
   * signal's reason.
   */
  signal?: AbortSignal | undefined;
  /**
   * Most tokens of the reply. Default: until the context is full. 0 only reads the prompt, so that a later reply starts
   * sooner.
   */
  maxTokens?: number | undefined;
  /**
   * Randomness, 0 to 100. 0 always takes the likeliest token. Defaults of this and the following options are those of
   * `info.sampling`, else of `info.card`; for Qwen3 0.6 when thinking, else 0.7, for Qwen3.5 by size.
   */
  temperature?: number | undefined;
  /**
   * Keeps the likeliest tokens that together have this probability, above 0 up to 1 (off). Default of Qwen3: 0.95 when
   * thinking, else 0.8.
   */
  topP?: number | undefined;
  /** Keeps this many of the likeliest tokens; 0 is off. Default 20. */
  topK?: number | undefined;
  /** Drops tokens whose probability is less than this share of the likeliest token's, 0 (off, default) to 1. */
  minP?: number | undefined;
  /** Divides the scores of tokens that are already in the text, above 0 up to 10. Default 1 (off). */
  repeatPenalty?: number | undefined;
  /**
   * Subtracted from the score of every token that is already in the reply, -2 to 2, also at temperature 0. Default of
   * Qwen3: 0 (Qwen3-VL without thinking: 1.5), of Qwen3.5: 1.5 or 2.
   */
  presencePenalty?: number | undefined;
  /** Subtracted from the score of a token once for each of its occurrences in the reply, -2 to 2. Default 0. */
  frequencyPenalty?: number | undefined;
  /** Added to the scores of single tokens by id, -100 to 100; `-Infinity` forbids a token. */
  logitBias?: Record<number, number> | undefined;
  /** Seed of the sampling, 0 to 2^53-1. The same seed gives the same reply on every machine. Default: a random one. */
  seed?: number | undefined;
  /**
   * Ends the reply before one of these texts, which is not included; at most 64 texts of at most 1000 characters.
   * Thinking is not searched.
   */
  stop?: string | readonly string[] | undefined;
  /**
   * Called while the prompt is read, but not while the reply waits. In the phase `vision`, images that are not cached
   * are encoded: `done` of `total` tokens, currently image number `image` of `images` (a video counts as one). In the
   * phase `text`, the prompt is read: `done` of `total` tokens, of which `cached` came from the cache. Phases may
   * alternate. A rejection of an async callback is reported on the console.
   */
  onPrefill?: ((progress: { phase: 'vision' | 'text'; done: number; total: number; cached: number; image?: number; images?: number }) => void) | undefined;
  /**
   * `background` replies begin after all `normal` ones, give up their positions first, and are remembered for a shorter
   * time. Default `normal`.
   */
  priority?: 'normal' | 'background' | undefined;
  /**
   * The text is JSON that is valid by this JSON Schema (2020-12, or the draft named in `$schema`: 4, 6, 7 or 2019-09):
   * tokens that would make it invalid are never chosen. {@link Result.value} is the parsed value.
   *
   * A schema of Zod or another {@link StandardSchema} is accepted as it is; TypeBox makes JSON Schemas. Properties are
   * written in the order of the schema. A schema that cannot be honoured is refused by name (`use/schema`) before any
   * work, and so is a value that is not a plain object (a Map, fields of a class: `use/param`), since JSON would ignore
   * it. A reply may have only one of `schema`, `regex`, `grammar`, `json` and `choices`. Thinking is unconstrained; the
   * text follows it.
   *
   * The model does not see the schema: say in a message what you want, and include the schema if its names do not
   * explain themselves.
   */
  schema?: object | boolean;
  /**
   * The whole text matches this expression, which is ECMAScript with the flag `u` (`\p{…}`: Unicode 17); `i`, `m`, `s`
   * and modifiers (`(?i:…)`) are supported. Not supported are lookbehind, lookahead inside repetitions, backreferences,
   * `\b` and `\B`, anchors inside repetitions (`use/schema`), and sets of sets with the flag `v` (`use/param`).
   */
  regex?: string | RegExp | undefined;
  /**
   * The whole text follows this grammar, in llama.cpp's GBNF, starting with its rule `root`. Tokens (`<think>`,
   * `<[7]>`, `!<think>`) are refused.
   */
  grammar?: string | undefined;
  /** The text is JSON, an object or any other value. */
  json?: boolean | undefined;
  /** The text is one of these, at most 10,000. */
  choices?: readonly string[] | undefined;
  /**
   * Whether objects may have members that the schema does not list. Default false: where a schema has `properties` and
   * does not mention others, replies and arguments of calls have no others. A schema that mentions them
   * (`additionalProperties: true`, `patternProperties` ...) is always followed as it is.
   */
  openObjects?: boolean | undefined;
  /**
   * Refuses (`use/schema`) everything in `schema`, or in the tools' `parameters`, that would otherwise be ignored:
   * unknown keywords, unknown formats, unknown dialects. By default {@link Result.schemaNotes} lists them.
   */
  strictSchema?: boolean | undefined;
  /**
   * White space in JSON by `schema` or `json`: none (`compact`, the default unless the text that `continue` extends has
   * some), or anywhere JSON allows it (`flexible`).
   */
  whitespace?: 'compact' | 'flexible' | undefined;
  /**
   * Returns the log probability of each token of the text, and those of this many likeliest tokens in its place, 0 to
   * 20: {@link Result.logprobs}. They are taken before penalties, temperature and other sampling, and are the same on
   * every machine.
   */
  logprobs?: number | undefined;
  /**
   * The person or group that the reply is for, as a number below 2^32 of your choice. Cached prompts are used only for
   * replies of the same scope, so that nobody learns from `cachedTokens`, or from the time an answer takes, what people
   * of another scope have asked. Default 0; a program that serves several people gives each a scope of their own. Work
   * beside the model (prompts, tokens of texts) is shared fairly between scopes.
   */
  cacheScope?: number | undefined;
}

/** Options of {@link Model.complete} only. */
export interface CompletionOptions extends CompleteOptions {
  /**
   * Returns the log probability of each token of the prompt, and those of this many likeliest tokens in its place, 0 to
   * 20: {@link Result.promptLogprobs}, and an event before the text. They follow from the same numbers as
   * {@link Model.logits} gives. With `maxTokens: 0` nothing else is generated. The cache is not used, so the prompt
   * takes as long as the first time.
   */
  promptLogprobs?: number | undefined;
  /**
   * Text after the gap that the reply fills in; the prompt is the text before it. Fails with `use/param` if the
   * vocabulary has no tokens for this (`<|fim_prefix|>`, `<|fim_suffix|>`, `<|fim_middle|>`). Models that were not
   * trained to fill in may write anything.
   */
  suffix?: string | undefined;
}

export interface ChatOptions extends CompleteOptions {
  /**
   * Whether the model thinks before it answers, if its chat template supports the choice. By default a template that has
   * a default of its own decides (Qwen3.5: 4B and 9B think, 0.8B and 2B do not), and other models do not think; a model
   * that always thinks does so anyway.
   */
  thinking?: boolean | undefined;
  /**
   * Saves the conversation's KV cache in the store under this name, a text of 1 to 256 bytes. It is read before the
   * reply, so that a reloaded page or another process continues at once (`usage.cachedTokens` tells), and updated after
   * the reply, while there is nothing else to do.
   *
   * Pass the whole conversation as always: whatever is missing, damaged or from another model is computed again, and no
   * token depends on it. A token takes a tenth of a megabyte (0.6B, `kv: 'f16'`). Saved data reveals the conversation
   * to anybody who has the store and the model: call {@link Model.forget} when you delete the conversation. If nothing
   * can be saved, or there is no room, the console says so.
   */
  save?: string | undefined;
  /**
   * Functions that the model may call, at most 128. Schemas that cannot be honoured are refused by name (`use/schema`).
   * The calls are in {@link Result.toolCalls}; carry them out, add the message with the calls and one message with each
   * result, and ask again. `run` of `quern/run` does all that. With {@link CompleteOptions.schema} or a similar option
   * a reply is either calls or a text of that form.
   */
  tools?: readonly Tool[] | undefined;
  /**
   * Whether the model calls tools: as it likes (`auto`, the default), not at all (`none`), or at least once before
   * anything but thinking (`required`, or `{ name }` for a certain tool). With `{ names }` the model sees all tools but
   * may call only these, at least one of them if `required`. A call follows its tool's schema from its first token on,
   * without penalties; the rest of the reply is free.
   */
  toolChoice?: 'auto' | 'none' | 'required' | { name: string } | { names: readonly string[]; required?: boolean | undefined } | undefined;
  /** Whether a reply may have several calls. Default true. If false, the reply ends after the first call. */
  parallelToolCalls?: boolean | undefined;
  /**
   * Continues the last message, which must be the assistant's: the reply is the text after it. Limits on the text apply
   * to both together, and {@link Result.value} is of both; a beginning that does not fit them fails with `use/param`.
   * Default: false.
   */
  continue?: boolean | undefined;
  /**
   * Whether the prompt has `Picture 1: `, `Video 1: ` before each image or video, counted over the conversation.
   * Default: false.
   */
  numberImages?: boolean | undefined;
  /**
   * What to do with a conversation that does not fit into the context together with room for the reply (a fifth of the
   * context, or `maxTokens` if that is less). `error` (default): the reply fails with `use/context` if no token is left
   * for it. `drop`: the oldest turns are left out, whole turns and two fifths of the context at once; system messages
   * and the last question stay. {@link Result.dropped} and an event tell the number of messages left out.
   */
  overflow?: 'error' | 'drop' | undefined;
}

/**
 * A token, its text (an incomplete character shows as U+FFFD), and the natural logarithm of its probability. `top` has
 * the likeliest tokens, best first.
 */
export interface Logprob {
  id: number;
  text: string;
  logprob: number;
  top: { id: number; text: string; logprob: number }[];
}

/**
 * A token of a prompt, and how likely it was after those before it. For the first token `logprob` is null and `top` is
 * empty.
 */
export type PromptLogprob = Omit<Logprob, 'logprob'> & { logprob: number | null };

/** A finished reply. `Value`: see {@link FromSchema}. */
export interface Result<Value = unknown> {
  text: string;
  /**
   * With {@link CompleteOptions.schema}, `json` or `choices`: the value of the text (of type `unknown` if the type does
   * not follow from the call). With a {@link StandardSchema}: what the library makes of it, with defaults and
   * transformations. Undefined without these options, and if the text was cut off (`finishReason` is not `stop`, or a
   * stop text occurred).
   */
  value?: Value | undefined;
  /**
   * Objections of a {@link StandardSchema} to the text that JSON Schema could not express (`refine`). There is no
   * `value` then.
   */
  issues?: readonly SchemaIssue[];
  /**
   * Parts of {@link CompleteOptions.schema}, or of the tools' `parameters`, that have no meaning in JSON Schema and
   * were ignored, once each: unknown keywords, formats and dialects, and members beside `$ref` in drafts up to 7.
   * `rule` is the keyword. Absent if there are none.
   */
  schemaNotes?: { rule: string; message: string }[];
  /** The text between `<think>` and `</think>`; empty if the model did not think. */
  thinking: string;
  /** The calls of {@link ChatOptions.tools} in the reply. A call of a tool that does not exist is text. */
  toolCalls: ToolCall[];
  /**
   * A call that was cut off (`finishReason` `length`, `context` or `aborted`), with its arguments so far. An
   * `id` or `name` that was not written yet is ''.
   */
  unfinishedCall?: { id: string; name: string; text: string };
  /**
   * With {@link CompleteOptions.logprobs}: of each token of the text, including those of a stop text. With `complete`:
   * of each token that was written, including the one with which the model ended the reply.
   */
  logprobs?: Logprob[];
  /**
   * With {@link CompletionOptions.promptLogprobs}: of each token of the prompt. Absent if the reply was stopped
   * earlier.
   */
  promptLogprobs?: PromptLogprob[];
  /**
   * With {@link ChatOptions.overflow} `drop`: how many of the oldest messages were left out, not counting system
   * messages.
   */
  dropped?: number;
  /** Which of the texts in {@link CompleteOptions.stop} ended the reply; absent if none did. */
  stopText?: string;
  /**
   * Why the reply ended. `stop`: the model or a stop text ended it. `tool-calls`: the same, after calls. `length`:
   * `maxTokens` was reached. `context`: the context was full. `aborted`: `stop()` or `break`.
   */
  finishReason: 'stop' | 'tool-calls' | 'length' | 'context' | 'aborted';
  usage: {
    /**
     * Tokens of the prompt. `imageTokens` of them stand for images and videos; `cachedTokens` of them came from the
     * cache and were not computed again.
     */
    promptTokens: number;
    imageTokens: number;
    cachedTokens: number;
    /** Tokens of the reply. `thinkingTokens` of them are its thinking. */
    completionTokens: number;
    thinkingTokens: number;
    /**
     * Tokens that were drafted, and those of them that were right; absent without drafts. See
     * {@link LoadOptions.drafts}.
     */
    draftedTokens?: number;
    acceptedTokens?: number;
  };
  timings: {
    /**
     * Milliseconds of waiting for a turn, then of reading the prompt and of writing, while other replies may run too.
     */
    waitMs: number;
    prefillMs: number;
    decodeMs: number;
    /** Speed of writing; 0 for fewer than two tokens. */
    tokensPerSecond: number;
  };
}

/**
 * A schema of a library that follows https://standardschema.dev and can describe itself as JSON Schema
 * (`~standard.jsonSchema`, or a method `toJSONSchema()`): Zod 4, ArkType 2, Valibot by `toStandardJsonSchema()`. A
 * reply follows the schema's input type; the value is what its `validate` returns.
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

/** An objection of a library's schema to a value that its JSON Schema allows. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * The type of a value that is valid by a JSON Schema, or that a {@link StandardSchema} returns, as far as TypeScript
 * can express it. The schema must be written in the call, or be `as const`. Keywords that are not understood (`$ref`,
 * `not`, `if`) give `unknown`.
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

/** Options with one more, from whose type the type of the value follows. */
type Limited<Options, Name extends string, Value> = Given<Omit<Options, Name>> & { readonly [Key in Name]: Value };

/** Options of a reply that has no value. */
type Free<Options> = Given<Omit<Options, 'schema' | 'json' | 'choices'>> & { readonly schema?: null | undefined; readonly json?: false | null | undefined; readonly choices?: null | undefined } | null;

/**
 * A piece of a reply. Pieces come in the order in which they are generated. `dropped`: this many messages were left
 * out. `prompt`: log probabilities of the prompt, if requested. A call is the `index`-th of its reply; first comes its
 * start, then its arguments as JSON in pieces (`delta`), then the whole call. A call that never becomes complete comes
 * as text as well. Every event has a `text`, which is empty if there is none to show.
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
 * A reply in progress. The work starts at once, or as soon as fewer than `parallel` others run, whether or not anybody
 * reads it; unread pieces are joined. Read it in one way: the reply itself (its text), `events` (with thinking), or a
 * stream of bytes. `result` is available in any case.
 *
 * Leaving a loop early (`break`, `return`, `throw`) and `stop()` end the work and keep what was generated: `result`
 * then has `finishReason: 'aborted'`. With `signal` the reply fails instead.
 */
export interface Reply<Value = unknown> extends AsyncIterable<string> {
  /** Text, thinking and calls as separate events. */
  readonly events: AsyncIterable<ReplyEvent>;
  /** Settles when the reply ends. If nobody handles its rejection, no unhandled rejection is reported. */
  readonly result: Promise<Result<Value>>;
  /**
   * Ends the work within 200 ms, also while the reply waits or the prompt is read. Other replies are not affected. Does
   * nothing once the reply has ended.
   */
  stop(): void;
  /**
   * Returns the text as UTF-8 bytes: `new Response(reply.toReadableStream())`. Cancelling the stream has the same
   * effect as leaving a loop.
   */
  toReadableStream(): ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** Sampling parameters recommended by a model card. */
export interface Card {
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  /** Only present if it is not 0. */
  readonly presencePenalty?: number;
}

/**
 * A type of the KV cache: its bytes per token, and the largest context that fits into `plan.limit`; 0 if the model
 * cannot use this type.
 */
export interface CacheChoice {
  readonly bytesPerToken: number;
  readonly largestContext: number;
}

/**
 * Facts about a loaded model: its file, its dimensions, and how it runs here. `quern info --json` prints the same for a
 * model that is not loaded, from the headers of its files alone; there it lacks `thinking`, `memory`, `work` and the
 * fields that only a running engine has (`threads`, `variant`, `dots`, `backend`, `gpu`, `address`, `memoryBytes`).
 */
export interface Info {
  /**
   * Name of the model, and its licence with name and address, as the file has them, or ''. They come from the file:
   * show them as text.
   */
  readonly name: string;
  readonly license: string;
  readonly licenseName: string;
  readonly licenseLink: string;
  /** `gguf`, `safetensors` or `ajc1`. */
  readonly format: string;
  /**
   * Program or method that quantized the weights of a folder, as its config.json has it: `fp8`, `mlx`, `gptq`,
   * `gptq_v2`, `awq`, `compressed-tensors`; or ''.
   */
  readonly quantizedBy: string;
  readonly architecture: string;
  /**
   * Metadata that the files lack or that was corrected: each key with the value that was assumed. Older files have no
   * `tokenizer.ggml.pre` (assumed `qwen2` if the vocabulary resembles Qwen's), or another `general.architecture`
   * (assumed `qwen3` for a `qwen2` that has norms of queries and keys). Usually empty.
   */
  readonly assumed: Readonly<Record<string, string>>;
  /**
   * Properties of the architecture: the marks in its conversations and the form of its calls, by the package's own
   * names for them, and whether the model may have a vision part.
   */
  readonly marks: string;
  readonly callForm: string;
  readonly takesVision: boolean;
  /**
   * Sampling recommended by the model card: the defaults of replies if the files recommend nothing (`sampling`). `plain`
   * and `images` are without thinking, `images` in a conversation with images or videos.
   */
  readonly card: { readonly plain: Card; readonly thinking: Card; readonly images: Card };
  /**
   * Sampling recommended by the files (`general.sampling.*`, generation_config.json): takes the place of the defaults
   * of {@link CompleteOptions}.
   */
  readonly sampling: Readonly<{ temperature?: number; topP?: number; topK?: number; minP?: number; repeatPenalty?: number }>;
  readonly parameters: number;
  /** Parameters that are used for one token: fewer than all if there are experts. */
  readonly activeParameters: number;
  readonly fileBytes: number;
  /** The weights by the name of their type (`Q8_0`), with the bytes that they take in the files. */
  readonly types: Readonly<Record<string, { readonly tensors: number; readonly parameters: number; readonly bytes: number }>>;
  readonly layers: number;
  readonly dim: number;
  /** Feed-forward size of the layers without experts; 0 if there are no such layers and the file does not have it. */
  readonly ffnDim: number;
  /**
   * Mixture of experts: experts per layer, experts used for each token, and their feed-forward size. 0 for other
   * models.
   */
  readonly experts: number;
  readonly expertsUsed: number;
  readonly expertDim: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly ropeTheta: number;
  /** Factor by which YaRN extends the context; 1 is no extension. */
  readonly ropeFactor: number;
  /** Whether the embedding is also the output head. */
  readonly tied: boolean;
  /**
   * Whether there is no output head: the folder was saved for vectors, by a class like `Qwen3Model`, and says that the
   * embedding does not serve as one. {@link Model.embed} works; replies, logits and ranks by words fail with
   * `model/unsupported`.
   */
  readonly headless: boolean;
  /** Columns of the logits. The first `tokens` of them are tokens, the rest is padding. */
  readonly vocabSize: number;
  readonly tokens: number;
  /** Ids of the tokens that end a reply. */
  readonly endTokens: readonly number[];
  /**
   * Ids that the model's files add before and after a plain text (`complete`, `tokenize`, `embed`). A chat template
   * writes its own.
   */
  readonly added: { readonly before: readonly number[]; readonly after: readonly number[] };
  /** Texts of the tokens that chat templates know by name, as far as the files have them. */
  readonly specialTokens: { readonly bos_token?: string; readonly eos_token?: string; readonly pad_token?: string; readonly unk_token?: string };
  /**
   * How the file says vectors are pooled, by GGUF's numbers. 3, the last token, is a model for vectors
   * ({@link Model.embed}); 4 is a model for ranking ({@link Model.rank}); 1 is the mean of all tokens, 2 the first
   * token; -1 means that nothing is said. Everything else is treated as 3: every Qwen3 model can do both, but only
   * models made for it do it well. `classes`: 2 if a file for ranking has outputs for yes and no, else 0.
   */
  readonly pooling: -1 | 0 | 1 | 2 | 3 | 4;
  /**
   * Settings of vectors in a sentence-transformers folder (`modules.json`, `1_Pooling/config.json`). `described`:
   * whether there are any. `normalize`: whether vectors are normalized if {@link EmbedOptions.normalize} is not given.
   * `refused`: a setting that is not supported, or ''; {@link Model.embed} refuses it by its name.
   */
  readonly vectors: { readonly described: boolean; readonly normalize: boolean; readonly refused: string };
  readonly classes: number;
  /** `gpt2`: byte-level BPE. `scores`: pairs by their scores, from a .tokenizer file. */
  readonly tokenizer: string;
  /** Positions that the model was made for, and positions that a conversation may have here. */
  readonly contextLength: number;
  readonly contextSize: number;
  /** Whether the file has a chat template of its own; if not, ChatML is used. */
  readonly chatTemplate: boolean;
  /** Whether that template supports the `thinking` option. */
  readonly thinking: boolean;
  /** The kernels in use; 'webgpu' on a graphics device. */
  readonly variant: Variant | 'webgpu';
  /** What computes, and which graphics device that is, or was before it was lost; null if there was none. */
  readonly backend: 'cpu' | 'webgpu';
  readonly gpu: Gpu | null;
  /**
   * How the kernels multiply codes, determined by a probe at the start: 'u8' (x86 with VNNI) and 's8' (ARM and newer
   * x86) by one instruction that is exact for whole bytes, 'u7' by one that is exact for 7 bits, 'i16' in 16 bits
   * (without relaxed SIMD), 'none' one by one (scalar). The results are the same with each.
   */
  readonly dots: 'u8' | 's8' | 'u7' | 'i16' | 'none';
  /** Number of threads in use. */
  readonly threads: number;
  /** Type of the KV cache. */
  readonly kv: 'f16' | 'q8' | 'f32';
  /** Conversion of the weights while they were loaded. {@link Info.types} are the types in the file. */
  readonly quantize: { readonly weights: Quantize; readonly embeddings: Quantize };
  /** Most tokens that a step reads. */
  readonly chunk: number;
  /** Most replies that are generated at the same time, and positions that they share. */
  readonly parallel: number;
  readonly kvPositions: number;
  /** Bytes of a conversation's state, 0 if the model has none; and how many states are remembered at least. */
  readonly stateBytes: number;
  readonly snapshots: number;
  /** Whether the model itself drafts tokens: see {@link LoadOptions.drafts}. */
  readonly drafts: boolean;
  /** Bytes that the engine needs once the model is loaded. */
  readonly memoryBytes: number;
  /**
   * The plan made from the file's header, in bytes: packed weights, KV cache (of `kvPositions` positions) and states, everything
   * else, the sum, and the limit; and for each type of `kv` the cost of a context.
   */
  readonly plan: {
    readonly weights: number; readonly cache: number; readonly scratch: number; readonly total: number; readonly limit: number;
    readonly f16: CacheChoice; readonly f32: CacheChoice; readonly q8: CacheChoice;
  };
  /**
   * Bytes that the engine uses, the most it ever used, the planned bytes, and the size of its wasm memory, as of the
   * last finished call. `cache`: pages of 32 positions, how many of them replies use, and how many are remembered for
   * later ones. `grammars`: bytes in addition that constrained replies take; 0 until the first of them.
   */
  readonly memory: {
    readonly used: number; readonly peak: number; readonly planned: number; readonly wasm: number; readonly grammars: number;
    readonly cache: { readonly pages: number; readonly used: number; readonly remembered: number };
  };
  /**
   * Work done since the load, as of the last finished call: steps, rows (tokens) that they computed for all replies,
   * how often a reply gave up its pages because there were too few, and rows that had to be computed again for that
   * reason. `sizes`: how many steps had 1 row, 2, up to 4, 8, 16, 32, 64, and more.
   */
  readonly work: {
    readonly steps: number; readonly rows: number; readonly letGo: number; readonly recomputed: number; readonly sizes: readonly number[];
  };
  /** Width of the engine's addresses in bits. */
  readonly address: Address;
  /** Number of files of the model, including those that only describe it (`config.json`, a vocabulary). */
  readonly files: number;
  /**
   * The vision part of the model; null if it has none. `layers`, `dim` and `heads` describe its encoder; `patch` is the
   * side of a patch in pixels, and `merge` the number of patches on each side of one token. `deepstack` lists the
   * blocks whose output also goes into the language model's first layers (DeepStack; none in Qwen3.5). The other
   * fields are limits of an image and of a video's frames together, the tokens of the largest image, and the bytes of
   * memory that encoding takes.
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
  /** Those of the tokens that were drafts, right and wrong ones. */
  readonly drafts: number;
  /**
   * Operations in the order of their first calls. `name` has the operands: `matmul Q8_0 [4096, 1024]` are the products
   * of one input with 4096 rows.
   */
  readonly operations: ReadonlyArray<Cost & {
    readonly name: string;
    /** Milliseconds in each layer, and outside of the layers. */
    readonly layerMs: readonly number[];
    readonly outsideMs: number;
  }>;
}

/**
 * Where the time goes. Steps in which each reply has a single token, and its drafts, count as decoding, steps in which
 * some replies read and others write as mixed. For vision, tokens are visual tokens.
 */
export interface Profile {
  readonly prefill: PhaseCost;
  readonly decode: PhaseCost;
  readonly mixed: PhaseCost;
  readonly vision: PhaseCost;
  /** Number of threads that work now: fewer than there are while the machine has no free processors for them. */
  readonly threads: number;
  /** Microseconds of an empty barrier, measured at the call; 0 with one thread. */
  readonly barrierUs: number;
}

declare global {
  /** As in `esnext.disposable`, which not every project includes. */
  interface SymbolConstructor { readonly asyncDispose: unique symbol }
}

/**
 * A loaded model. Calls run side by side, and the result of a call never depends on the others. `await using` disposes
 * of the model.
 */
export interface Model {
  readonly info: Info;
  /**
   * Answers a message or a whole conversation. Pass the whole conversation each time: known parts are not computed
   * again.
   *
   * The reply fails with `use/param`, `use/context` and `use/busy` (before any work), `model/nonfinite`, `mem/load`,
   * `engine/*`.
   */
  chat<const Schema extends object | boolean>(messages: string | readonly Message[], options: Limited<ChatOptions, 'schema', Schema>): Reply<FromSchema<Schema>>;
  chat<const Choice extends string>(messages: string | readonly Message[], options: Limited<ChatOptions, 'choices', readonly Choice[]>): Reply<Choice>;
  chat(messages: string | readonly Message[], options?: Free<ChatOptions>): Reply<undefined>;
  chat(messages: string | readonly Message[], options?: Given<ChatOptions>): Reply;
  /**
   * Continues a text without a template, but with the tokens of {@link Info.added}. Token ids are taken as they are.
   * The `thinking` of the result is empty.
   */
  complete<const Schema extends object | boolean>(
    prompt: string | ArrayLike<number>, options: Limited<CompletionOptions, 'schema', Schema>): Reply<FromSchema<Schema>>;
  complete<const Choice extends string>(prompt: string | ArrayLike<number>, options: Limited<CompletionOptions, 'choices', readonly Choice[]>): Reply<Choice>;
  complete(prompt: string | ArrayLike<number>, options?: Free<CompletionOptions>): Reply<undefined>;
  complete(prompt: string | ArrayLike<number>, options?: Given<CompletionOptions>): Reply;
  /**
   * Returns the token ids of a text with those of {@link Info.added}. In it `<think>`, `<tool_call>` and the like are
   * tokens, and control tokens such as `<|im_end|>` are text. For a conversation, returns the whole prompt that a reply
   * would be generated from.
   */
  tokenize(input: string | Uint8Array | readonly Message[], options?: Given<PromptOptions>): Promise<number[]>;
  /** Returns the text of token ids, special tokens included. `use/param` for an id that does not exist. */
  detokenize(tokens: ArrayLike<number>, options?: Given<TextOptions & { bytes?: false | undefined }>): Promise<string>;
  /** Returns the bytes of each token, since a token may be only a part of a character. */
  detokenize(tokens: ArrayLike<number>, options: Given<TextOptions> & { readonly bytes: true }): Promise<Uint8Array<ArrayBuffer>[]>;
  /**
   * Returns the number of tokens of a text, or of a conversation with everything its template adds. Images are
   * measured, but not encoded.
   */
  countTokens(input: string | readonly Message[], options?: Given<PromptOptions>): Promise<number>;
  /**
   * Returns the scores of every possible next token after each of these tokens, or after each token of a conversation:
   * `[tokens, info.vocabSize]`, row by row. Runs in the background.
   */
  logits(input: ArrayLike<number> | readonly Message[], options?: Given<PromptOptions>): Promise<Float32Array<ArrayBuffer>>;
  /**
   * Returns vectors of texts: texts with a similar meaning have similar vectors. A vector is the hidden state of the
   * last token, cut to `dimensions`, then scaled to length 1. A text may be given as token ids. Runs after all replies,
   * many texts side by side; each vector is the same to the bit alone or among others. Models like Qwen3-Embedding need
   * an `instruction` for queries, and none for the texts that are searched.
   *
   * `use/empty` for an empty list, `use/param`, `use/context` if the instruction alone fills the context,
   * `model/unsupported` if the file needs another `pooling`.
   */
  embed(texts: string | readonly (string | ArrayLike<number>)[], options?: Given<EmbedOptions>): Promise<Vectors>;
  /**
   * Ranks documents by how well they answer a query, the best first: the score is the share of yes in the model's yes
   * and no, 0 to 1. Models like Qwen3-Reranker were made for it. A document that is too long loses its end. Fails as
   * {@link Model.embed} does, with `use/context` if the query alone fills the context.
   */
  rank(query: string, documents: readonly string[], options?: Given<RankOptions>): Promise<Rank[]>;
  /**
   * Returns the encoder's output for an image: the number of tokens, their rows and columns, and the values of each,
   * `[tokens, width]`.
   */
  look(image: ImageSource, options?: Given<TextOptions & { detail?: 'low' | 'auto' | 'high' | undefined; maxPixels?: number | undefined }>): Promise<Look>;
  /**
   * Lists the conversations that are saved in the model's store, the most recently used first, after pending saves are
   * finished.
   */
  saved(options?: Given<CallOptions>): Promise<SavedConversation[]>;
  /**
   * Deletes the conversation saved under a name, also while a reply for it is in progress; without a name, all saved
   * conversations of the store. `storage/busy` while another tab or process is saving it.
   */
  forget(name?: string | null, options?: Given<CallOptions>): Promise<void>;
  /**
   * Returns the cost of the work since the load, or since the last call of this method. Null unless the model was
   * loaded with `profile: true`.
   */
  profile(options?: Given<CallOptions>): Promise<Profile | null>;
  /**
   * Ends the engine after pending saves are finished (5 seconds at most), and frees all its memory. Always resolves;
   * pending calls fail with `engine/disposed`.
   */
  dispose(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** Options of calls that take texts. */
export interface TextOptions extends CallOptions {
  /** As {@link CompleteOptions.cacheScope}: a scope that asks for much work waits behind the others. */
  cacheScope?: number | undefined;
}

/** How a conversation becomes a prompt, as in {@link ChatOptions}. */
export interface PromptOptions extends TextOptions {
  thinking?: boolean | undefined;
  tools?: readonly Tool[] | undefined;
  numberImages?: boolean | undefined;
  /**
   * Whether the template begins the next reply after the messages (`add_generation_prompt`). Default true; false for
   * the conversation alone.
   */
  generationPrompt?: boolean | undefined;
  /** Whether the reply continues the last message, which must be the assistant's. Default false. */
  continue?: boolean | undefined;
}

export interface RankOptions extends CallOptions {
  /**
   * The purpose of the documents in one sentence, best in English. Default: "Given a web search query, retrieve
   * relevant passages that answer the query".
   */
  instruction?: string | undefined;
  /** As {@link CompleteOptions.cacheScope}. */
  cacheScope?: number | undefined;
  /** As {@link EmbedOptions.onProgress}, for the documents. */
  onProgress?: ((progress: { done: number; total: number }) => void) | undefined;
}

export interface EmbedOptions extends CallOptions {
  /**
   * The purpose of queries in one sentence: `Given a question, find notes that answer it`. Default: none, as for
   * documents.
   */
  instruction?: string | undefined;
  /** Length of a vector, which is the first part of the full one. Default, and most: `info.dim`. */
  dimensions?: number | undefined;
  /**
   * Whether vectors are scaled to length 1, so that their dot products are cosines. Default: as the model's files say
   * ({@link Info.vectors}), usually true.
   */
  normalize?: boolean | undefined;
  cacheScope?: number | undefined;
  /**
   * Called at most about ten times a second while texts are read, and with the last of them: `done` of `total` texts.
   */
  onProgress?: ((progress: { done: number; total: number }) => void) | undefined;
}

export interface Vectors {
  /** One vector for each text, in the same order, each with a buffer of its own. */
  vectors: Float32Array<ArrayBuffer>[];
  /** Tokens of the texts, including cached ones. */
  tokens: number;
  /** Indices of texts that had more tokens than the context and lost their ends. */
  truncated: number[];
}

export interface Rank {
  /** Index of the document in the list. */
  index: number;
  score: number;
  /** Present if the document was too long and lost its end. */
  truncated?: true;
}

/**
 * An image as the language model gets it: for each token the values that stand for it, and those that go into the first
 * layers in addition.
 */
export interface Look {
  tokens: number;
  rows: number;
  columns: number;
  width: number;
  values: Float32Array<ArrayBuffer>;
  /**
   * Original size of an image of more than 16 million pixels that was reduced while it was decoded, to twice what the
   * model sees; null if it was not.
   */
  reduced: { width: number; height: number } | null;
}

/**
 * What this browser can do. The package needs WebAssembly with SIMD and module workers: Chrome 93, Firefox 114, Safari
 * 16.4.
 */
export interface Support {
  /** Whether models can run here at all. */
  ok: boolean;
  /** Why models cannot run, or why only with one thread. Empty if all is well. */
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
  /** Most bytes of memory that a model may use here. */
  maxMemory: number;
}

export function support(): Support;

/**
 * Codes of {@link QuernError}. The part before the slash says what can help: `model` another file, `net` the connection
 * or the server, `storage` other tabs or more room, `mem` a smaller model or context, `env` another browser or server
 * configuration, `engine` loading again, `image` another image, `use` a change of the calling code.
 */
export type ErrorCode =
  | 'model/format' | 'model/unsupported' | 'model/inconsistent' | 'model/nonfinite' | 'model/integrity'
  | 'net/offline' | 'net/http' | 'net/unreachable' | 'net/stalled' | 'net/truncated' | 'net/changed' | 'net/range'
  | 'storage/quota' | 'storage/unavailable' | 'storage/busy' | 'storage/corrupt'
  | 'mem/plan' | 'mem/load' | 'mem/kv'
  | 'gpu/lost'
  | 'env/gpu' | 'env/simd' | 'env/csp' | 'env/worker' | 'env/version' | 'env/canvas'
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
  /** A sentence for people on what to do about the error; may be empty. */
  readonly hint: string;
  /** What was going on. */
  readonly phase: 'start' | 'load' | 'call';
  /** Whether the same call may succeed later without any change. */
  readonly retryable: boolean;
  /**
   * Numbers and names of the case: `rule` and `offset` (model/*), `status` (net/http), `limit` and `found`
   * (use/context), `param` (use/param); for an unknown name, `known` lists the names that exist.
   */
  readonly detail: Readonly<Record<string, unknown>>;
  /** Returns everything for a log, including the message, and the text of the cause. */
  toJSON(): {
    name: 'QuernError'; code: ErrorCode; message: string; hint: string; phase: QuernError['phase']; retryable: boolean; detail: Readonly<Record<string, unknown>>; cause?: string;
  };
}
