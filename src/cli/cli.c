/* SPDX-License-Identifier: MIT
 *
 * The native command line: the same commands as the npm package's, for development, tests and sanitizers. It reads a file in
 * chunks, exactly as a page does. `chat` renders ChatML itself, since the file's template needs a template engine, which
 * lives in JavaScript. Exit status 0, or 1 with one line `quern: CODE: sentence` on stderr.
 */
#include "cli/cli_files.h"
#include "cli/cli_output.h"
#include "cli/cli_process.h"
#include "cli/cli_quantize.h"
#include "quern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct args {
    const char *command, *model, *prompt, *tokens, *out, *type;
    struct quern_options engine;
    struct sampler_params sampling;
    int max_tokens, bench_prompt, bench_generate;
    size_t feed;           /* bytes per quern_feed */
    bool json, ids, nul;
    double load_ms;
};

static int complain(const char *code, const char *sentence)
{
    fprintf(stderr, "quern: %s: %s\n", code, sentence);
    return 1;
}

static int complain_engine(const struct quern_engine *e)
{
    const struct error *err = quern_error(e);
    return complain(status_name(err->code), err->message);
}

/* --- arguments --------------------------------------------------------------------------------------------- */

static const char usage[] =
    "quern COMMAND MODEL [options]\n"
    "  chat MODEL                           a conversation, a line a turn\n"
    "  run MODEL PROMPT [--json]            continues the prompt\n"
    "  tokenize MODEL [--ids] [--nul]       stdin to tokens\n"
    "  logits MODEL --tokens \"1 2\" --out F  float32 [n, vocab], little-endian\n"
    "  bench MODEL [--prompt N --generate N --json --profile]\n"
    "  info MODEL                           what it is and what it takes, as JSON; reads no weights\n"
    "  quantize MODEL OUT.gguf --type q8_0|q4_0|q4_k|q6_k [--threads N]\n"
    "MODEL: a file, the first one of a split model (-00001-of-00003.gguf), a folder with safetensors and JSON files,\n"
    "       or a qwen3.c checkpoint whose .tokenizer file stands beside it\n"
    "options: --threads N --variant scalar|simd --kv f16|q8|f32 --quantize q8|q4 --context N --chunk N --memory BYTES --max-tokens N\n"
    "         --temperature T --top-k N --top-p P --min-p P --seed S --feed BYTES";

static bool read_kv(const char *value, struct args *a)
{
    static const char *const names[] = {[QUERN_KV_F16] = "f16", [QUERN_KV_F32] = "f32", [QUERN_KV_Q8] = "q8"};
    for (int i = 0; i < 3; i++) {
        a->engine.kv = (enum quern_kv)i;
        if (!strcmp(value, names[i])) return true;
    }
    return false;
}

static bool read_quantize(const char *value, struct args *a)
{
    a->engine.quantize = strcmp(value, "q8") ? QUERN_TO_Q4 : QUERN_TO_Q8;
    return !strcmp(value, "q8") || !strcmp(value, "q4");
}

static bool read_variant(const char *value, struct args *a)
{
    a->engine.scalar = strcmp(value, "scalar") == 0;
    return a->engine.scalar || strcmp(value, "simd") == 0;
}

/* A whole number of 0 .. 2^31 - 1. */
static bool read_int(const char *value, int *out)
{
    char *end;
    long v = strtol(value, &end, 10);
    *out = (int)v;
    return *value && !*end && v >= 0 && v <= INT32_MAX;
}

static bool read_float(const char *value, float *out)
{
    char *end;
    *out = strtof(value, &end);
    return *value && !*end;
}

static bool read_size(const char *value, size_t *out)
{
    int v;
    bool ok = read_int(value, &v) && v > 0;
    *out = (size_t)v;
    return ok;
}

static bool read_u64(const char *value, uint64_t *out)
{
    char *end;
    *out = strtoull(value, &end, 10);
    return *value && !*end;
}

/* One option with a value; false when it is unknown or its value bad. */
static bool read_option(const char *name, const char *value, struct args *a)
{
    if (!strcmp(name, "--threads")) return read_int(value, &a->engine.threads);
    if (!strcmp(name, "--context")) return read_int(value, &a->engine.context_size);
    if (!strcmp(name, "--chunk")) return read_int(value, &a->engine.chunk);
    if (!strcmp(name, "--kv")) return read_kv(value, a);
    if (!strcmp(name, "--quantize")) return read_quantize(value, a);
    if (!strcmp(name, "--variant")) return read_variant(value, a);
    if (!strcmp(name, "--max-tokens")) return read_int(value, &a->max_tokens);
    if (!strcmp(name, "--prompt")) return read_int(value, &a->bench_prompt);
    if (!strcmp(name, "--generate")) return read_int(value, &a->bench_generate);
    if (!strcmp(name, "--temperature")) return read_float(value, &a->sampling.temperature);
    if (!strcmp(name, "--top-k")) return read_int(value, &a->sampling.top_k);
    if (!strcmp(name, "--top-p")) return read_float(value, &a->sampling.top_p);
    if (!strcmp(name, "--min-p")) return read_float(value, &a->sampling.min_p);
    if (!strcmp(name, "--seed")) return read_u64(value, &a->sampling.seed);
    if (!strcmp(name, "--memory")) return read_u64(value, &a->engine.memory_limit);
    if (!strcmp(name, "--feed")) return read_size(value, &a->feed);
    if (!strcmp(name, "--tokens")) return (a->tokens = value) != NULL;
    if (!strcmp(name, "--out")) return (a->out = value) != NULL;
    if (!strcmp(name, "--type")) return (a->type = value) != NULL;
    return false;
}

static bool read_flag(const char *name, struct args *a)
{
    bool *flag = !strcmp(name, "--json") ? &a->json : !strcmp(name, "--ids") ? &a->ids : !strcmp(name, "--nul") ? &a->nul
                 : !strcmp(name, "--profile") ? &a->engine.profile : NULL;
    if (flag) *flag = true;
    return flag != NULL;
}

static bool read_args(int argc, char **argv, struct args *a)
{
    const char **words[] = {&a->command, &a->model, &a->prompt};
    int n = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            if (n == 3) return false;
            *words[n++] = argv[i];
        } else if (!read_flag(argv[i], a)) {
            if (i + 1 >= argc || !read_option(argv[i], argv[i + 1], a)) return false;
            i++;
        }
    }
    return n >= 2;
}

/* --- loading ------------------------------------------------------------------------------------------------- */

static int feed_file(struct quern_engine *e, FILE *f, size_t chunk, bool inspect)
{
    uint8_t *buffer = malloc(chunk);
    if (!buffer) return ERR_MEM_LOAD;
    int status = OK;
    for (size_t n; !status && !(inspect && quern_file_size(e)) && (n = fread(buffer, 1, chunk, f)) > 0;) status = quern_feed(e, buffer, n);
    free(buffer);
    return status;
}

/* Whether all files are there, and their sizes in the engine's options. */
static bool measure_files(struct args *a, const struct cli_files *files)
{
    a->engine.files = files->n;
    for (int i = 0; i < files->n; i++) {
        uint64_t size;
        FILE *f = cli_open(files->paths[i], &size);
        if (f) fclose(f);
        else return complain("use/param", "The model or a file of it is missing or cannot be read."), false;
        *(i ? &a->engine.rest_size : &a->engine.file_size) += size;
    }
    return files->n > 0 || (complain("use/param", "The folder holds no model."), false);
}

static int feed_all(struct quern_engine *e, const struct args *a, const struct cli_files *files)
{
    int status = OK;
    for (int i = 0; !status && i < files->n; i++) {
        uint64_t size;
        FILE *f = cli_open(files->paths[i], &size);
        if (!f) return ERR_PARAM;
        if (i > 0) status = quern_next_file(e, size);
        if (!status) status = feed_file(e, f, a->feed, a->engine.inspect);
        fclose(f);
    }
    return status ? status : quern_finish(e);
}

/* NULL after the complaint. */
static struct quern_engine *load(struct args *a)
{
    struct cli_files files = cli_files(a->model);
    struct quern_engine *e = NULL;
    if (measure_files(a, &files)) {
        e = quern_new(&a->engine);
        if (!e) complain("mem/load", "Not enough memory to start.");
        else if (feed_all(e, a, &files)) {
            complain_engine(e);
            quern_free(e);
            e = NULL;
        }
    }
    cli_files_free(&files);
    return e;
}

/* --- text ------------------------------------------------------------------------------------------------------ */

/* Owned by the caller; NULL when memory is short. */
static int32_t *tokenize(struct quern_engine *e, struct bytes text, enum quern_text mode, int *n)
{
    int64_t count = quern_tokenize(e, text, mode, 0, NULL, 0);
    int32_t *ids = count >= 0 && count < INT32_MAX ? malloc((size_t)(count + 1) * sizeof *ids) : NULL;
    if (ids) quern_tokenize(e, text, mode, 0, ids, count);
    *n = (int)count;
    return ids;
}

static char *read_all(FILE *f, size_t *size)
{
    size_t room = 1 << 16;
    char *text = malloc(room);
    *size = 0;
    while (text) {
        size_t n = fread(text + *size, 1, room - *size, f);
        *size += n;
        if (n == 0) return text;
        if (*size < room) continue;
        char *grown = realloc(text, room *= 2);
        if (!grown) free(text);
        text = grown;
    }
    return NULL;
}

/* Computes everything that is pending. */
static int drain(struct quern_engine *e, struct quern_sequence *s)
{
    int status = OK;
    while (!status && quern_sequence_pending(s) > 0) status = quern_step(e, 0);
    return status;
}

/* --- generation ---------------------------------------------------------------------------------------------- */

/* A reply in the making: text goes out as it comes, unless it is kept for --json. */
struct reply {
    FILE *live;        /* NULL: keep only */
    char *text;        /* kept; grows */
    size_t size, room;
    int tokens;
    bool ended;        /* by an end token */
};

static void reply_add(struct reply *r, struct bytes text)
{
    if (r->live) fwrite(text.data, 1, text.size, r->live), fflush(r->live);
    if (r->size + text.size + 1 > r->room) {
        char *grown = realloc(r->text, r->room = (r->size + text.size + 1) * 2);
        if (!grown) return;
        r->text = grown;
    }
    if (text.size) memcpy(r->text + r->size, text.data, text.size);
    r->size += text.size;
    r->text[r->size] = 0;
}

/* From the sequence's tokens on. OK, or a status of the engine. */
static int generate(struct quern_engine *e, struct quern_sequence *s, const struct args *a, struct reply *r)
{
    int status = quern_sample_begin(s, &a->sampling);
    while (!status && r->tokens < a->max_tokens) {
        if ((status = drain(e, s))) break;
        int id = quern_sample(s);
        if (id < 0) return id;
        if ((r->ended = quern_is_end(e, id))) break;
        r->tokens++;
        reply_add(r, quern_stream(s, id));
        if (quern_sequence_push(s, id)) break; /* the context is full */
    }
    reply_add(r, quern_stream(s, -1));
    return status;
}

static void print_json_text(const char *text, size_t size)
{
    putchar('"');
    for (size_t i = 0; i < size; i++) {
        uint8_t c = (uint8_t)text[i];
        if (c == '"' || c == '\\') printf("\\%c", c);
        else if (c < 0x20) printf("\\u%04x", c);
        else putchar(c);
    }
    putchar('"');
}

/* --- commands ------------------------------------------------------------------------------------------------ */

typedef int command_fn(struct quern_engine *e, struct args *a);

static int run_info(struct quern_engine *e, struct args *a)
{
    (void)a;
    puts(quern_info(e));
    return 0;
}

/* The tokens of a prompt, set in a new sequence. NULL after the complaint. */
static struct quern_sequence *prompt_sequence(struct quern_engine *e, const char *text, enum quern_text mode)
{
    int n;
    int32_t *ids = tokenize(e, (struct bytes){(const uint8_t *)text, strlen(text)}, mode, &n);
    struct quern_sequence *s = ids ? quern_sequence_new(e) : NULL;
    if (!s) complain("mem/load", "Not enough memory for the prompt.");
    else if (quern_sequence_set(s, ids, n, QUERN_LAST) < 0) {
        complain_engine(e);
        quern_sequence_free(s);
        s = NULL;
    }
    free(ids);
    return s;
}

static int run_run(struct quern_engine *e, struct args *a)
{
    struct reply r = {.live = a->json ? NULL : stdout};
    struct quern_sequence *s = a->prompt ? prompt_sequence(e, a->prompt, QUERN_TEXT) : NULL;
    if (!s) return a->prompt ? 1 : complain("use/param", usage);
    int prompt_tokens = quern_sequence_pending(s), status = generate(e, s, a, &r);
    if (status) complain_engine(e);
    else if (a->json) {
        printf("{\"text\":");
        print_json_text(r.text, r.size);
        printf(",\"finishReason\":\"%s\",\"promptTokens\":%d,\"completionTokens\":%d}\n", r.ended ? "stop" : "length", prompt_tokens, r.tokens);
    } else {
        putchar('\n');
    }
    free(r.text);
    return status != 0;
}

/* One turn of ChatML, appended to the conversation so far, which goes in whole each time: the cache knows its prefix. */
static bool chat_append(char **talk, size_t *size, const char *text, size_t n)
{
    char *grown = realloc(*talk, *size + n + 1);
    if (!grown) return false;
    memcpy(grown + *size, text, n);
    grown[*size += n] = 0;
    *talk = grown;
    return true;
}

static bool chat_turn(struct quern_engine *e, struct args *a, char **talk, size_t *size, const char *line)
{
    static const char begin[] = "<|im_start|>user\n", middle[] = "<|im_end|>\n<|im_start|>assistant\n", end[] = "<|im_end|>\n";
    struct reply r = {.live = stdout};
    bool ok = chat_append(talk, size, begin, sizeof begin - 1) && chat_append(talk, size, line, strlen(line)) &&
              chat_append(talk, size, middle, sizeof middle - 1);
    struct quern_sequence *s = ok ? prompt_sequence(e, *talk, QUERN_CHAT) : NULL;
    ok = s && generate(e, s, a, &r) == OK;
    quern_sequence_free(s);
    putchar('\n');
    ok = ok && chat_append(talk, size, r.text, r.size) && chat_append(talk, size, end, sizeof end - 1);
    free(r.text);
    return ok;
}

static int run_chat(struct quern_engine *e, struct args *a)
{
    char line[65536], *talk = NULL;
    size_t size = 0;
    bool ok = true;
    while (ok && fputs("> ", stdout) >= 0 && fflush(stdout) == 0 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        ok = chat_turn(e, a, &talk, &size, line);
    }
    free(talk);
    return ok ? 0 : 1;
}

static void print_tokens(struct quern_engine *e, const int32_t *ids, int n, bool only_ids)
{
    for (int i = 0; i < n; i++) {
        struct bytes text = quern_token(e, ids[i]);
        printf(i && only_ids ? " %d" : "%d", ids[i]);
        if (only_ids) continue;
        putchar(' ');
        print_json_text((const char *)text.data, text.size);
        putchar('\n');
    }
    if (only_ids) putchar('\n');
}

static int run_tokenize(struct quern_engine *e, struct args *a)
{
    size_t size;
    char *text = read_all(stdin, &size);
    if (!text) return complain("mem/load", "Not enough memory for the text.");
    for (size_t at = 0, end; at <= size; at = end + 1) {
        const char *nul = a->nul ? memchr(text + at, 0, size - at) : NULL;
        end = nul ? (size_t)(nul - text) : size;
        if (a->nul && at == size) break; /* after the last NUL */
        int n;
        int32_t *ids = tokenize(e, (struct bytes){(const uint8_t *)text + at, end - at}, QUERN_TEXT, &n);
        if (ids) print_tokens(e, ids, n, a->ids);
        free(ids);
    }
    free(text);
    return 0;
}

/* Numbers separated by spaces or commas. Owned by the caller. */
static int32_t *read_ids(const char *text, int *n)
{
    int32_t *ids = malloc((strlen(text) / 2 + 1) * sizeof *ids);
    *n = 0;
    for (char *end; ids; text = end) {
        text += strspn(text, " ,");
        long id = strtol(text, &end, 10);
        if (end == text) break;
        ids[(*n)++] = (int32_t)id;
    }
    return ids;
}

/* Rows of logits as they come, a few per step. OK or a status of the engine; what the file says is in *failed. */
static int write_logits(struct quern_engine *e, struct quern_sequence *s, struct output *o, int *failed)
{
    while (quern_sequence_pending(s) > 0 && !*failed && !process_signal()) {
        int first, rows, status = quern_step(e, 0);
        if (status) return status;
        const float *logits = quern_logits(s, &first, &rows);
        *failed = output_add(o, logits, sizeof *logits * (size_t)rows * (size_t)quern_vocab_size(e));
    }
    return OK;
}

static int run_logits(struct quern_engine *e, struct args *a)
{
    int n, status = OK;
    if (!a->tokens || !a->out) return complain("use/param", usage);
    int32_t *ids = read_ids(a->tokens, &n);
    struct quern_sequence *s = quern_sequence_new(e);
    struct output o = {.fd = -1};
    struct error err;
    int failed = ids && s ? output_open(&o, a->out) : ENOMEM;
    if (o.unfinished) process_note_signals();
    if (!failed) status = min_int(quern_sequence_set(s, ids, n, QUERN_ALL), OK);
    free(ids);
    if (!failed && !status) status = write_logits(e, s, &o, &failed);
    int stopped = process_signal();
    if (!failed && !status && !stopped) failed = output_finish(&o);
    if (status) complain_engine(e);
    if (failed) complain(output_explain(&o, failed, &err), err.message);
    if (stopped) complain("use/aborted", "The writing was stopped; nothing was kept of it.");
    output_close(&o);
    return stopped ? 128 + stopped : status || failed;
}

/* --- bench ------------------------------------------------------------------------------------------------------ */

/* Milliseconds to compute n tokens at once, then `more` one by one. */
static int time_tokens(struct quern_engine *e, int n, int more, double *prefill, double *decode)
{
    struct quern_sequence *s = quern_sequence_new(e);
    int32_t *ids = calloc((size_t)n + 1, sizeof *ids);
    int status = s && ids ? OK : ERR_MEM_LOAD;
    for (int i = 0; ids && i < n; i++) ids[i] = (i * 31 + n) % quern_vocab_size(e); /* n: no prefix of another length's is known */
    if (!status) status = min_int(quern_sequence_set(s, ids, n, QUERN_LAST), OK);
    double start = now_ms();
    if (!status) status = drain(e, s);
    *prefill = now_ms() - start;
    start = now_ms();
    for (int i = 0; !status && i < more; i++) {
        status = quern_sequence_push(s, (i * 17 + 3) % quern_vocab_size(e));
        if (!status) status = drain(e, s);
    }
    *decode = now_ms() - start;
    quern_sequence_free(s);
    free(ids);
    return status;
}

static void print_operations(const struct profile *p, enum profile_phase phase, const struct profile_cost *all)
{
    printf("%-36s %8s %10s %6s %8s %8s %9s\n", "operation", "calls", "ms", "%", "GMAC/s", "GB/s", "barriers");
    for (int i = 0; profile_operation(p, i); i++) {
        struct profile_cost c = profile_cost(p, phase, i, PROFILE_ALL);
        if (c.calls == 0) continue;
        printf("%-36s %8.0f %10.2f %6.1f %8.1f %8.1f %9.0f\n", profile_operation(p, i), c.calls, c.ms, 100 * c.ms / all->ms, c.macs / c.ms / 1e6,
               c.bytes / c.ms / 1e6, c.barriers);
    }
}

static void print_layers(const struct profile *p, enum profile_phase phase)
{
    printf("ms per layer:");
    for (int l = 0;; l++) {
        struct profile_cost c = profile_cost(p, phase, PROFILE_ALL, l);
        if (c.calls == 0) break;
        printf(" %.2f", c.ms);
    }
    printf("; outside: %.2f\n", profile_cost(p, phase, PROFILE_ALL, PROFILE_OUTSIDE).ms);
}

/* One phase; `ms` is what it took by the clock. */
static void print_phase(const struct profile *p, const char *name, enum profile_phase phase, double ms)
{
    struct profile_cost all = profile_cost(p, phase, PROFILE_ALL, PROFILE_ALL);
    double tokens = profile_tokens(p, phase);
    if (all.calls == 0) return;
    printf("\n%s of %.0f tokens: %.2f of %.2f ms in operations, %.1f barriers per token, %.2f us each when empty; %d threads in the end\n", name,
           tokens, all.ms, ms, all.barriers / tokens, profile_barrier_us(p), profile_threads(p));
    print_operations(p, phase, &all);
    print_layers(p, phase);
}

static int run_bench(struct quern_engine *e, struct args *a)
{
    double prefill, decode;
    uint64_t used, peak;
    struct profile *p = quern_profile(e);
    time_tokens(e, 8, 4, &prefill, &decode); /* warm up */
    if (p) profile_reset(p);
    if (time_tokens(e, a->bench_prompt, a->bench_generate, &prefill, &decode)) return complain_engine(e);
    quern_memory(e, &used, &peak);
    const char *form = a->json ? "{\"prefill_tps\":%.2f,\"decode_tps\":%.2f,\"load_ms\":%.1f,\"peak_bytes\":%llu,\"variant\":\"%s\",\"threads\":%d"
                               : "prefill %.2f tokens/s, decode %.2f tokens/s, load %.1f ms, peak %llu bytes, %s, %d threads\n";
    printf(form, a->bench_prompt * 1e3 / prefill, a->bench_generate * 1e3 / decode, a->load_ms, (unsigned long long)peak,
           a->engine.scalar ? "scalar" : "simd", max_int(a->engine.threads, 1));
    if (p && a->json) printf(",\"profile\":%s", profile_json(p));
    if (a->json) puts("}");
    if (!p || a->json) return 0;
    print_phase(p, "prefill", PROFILE_PREFILL, prefill);
    print_phase(p, "decode", PROFILE_DECODE, decode);
    return 0;
}

/* --- quantize ---------------------------------------------------------------------------------------------------- */

/* On a terminal only; overwrites itself. */
static void show_progress(double part)
{
    enum { WIDTH = 40 };
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r[%-*.*s] %3.0f %%", WIDTH, (int)(part * WIDTH), "########################################", 100 * part);
    if (part == 1) fputc('\n', stderr);
}

static int run_quantize(const struct args *a)
{
    struct quantizing *q = a->prompt && a->type ? quantizing_new(a->model, a->prompt, a->type, a->engine.threads) : NULL;
    if (!q) return complain("use/param", usage);
    int status = 1;
    process_note_signals();
    while (status == 1 && !process_signal()) {
        status = quantizing_step(q);
        show_progress(quantizing_progress(q));
    }
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr); /* an unfinished bar */
    if (status < 0) complain(quantizing_code(q), quantizing_message(q));
    if (status > 0) complain("use/aborted", "The conversion was stopped; nothing was kept of it.");
    quantizing_free(q);
    return status > 0 ? 128 + process_signal() : status != 0; /* as shells have it */
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        command_fn *run;
    } commands[] = {
        {"chat", run_chat}, {"run", run_run}, {"tokenize", run_tokenize}, {"logits", run_logits}, {"bench", run_bench}, {"info", run_info}};
    /* Sampling defaults of the model card without thinking, as in the npm command line. */
    struct args a = {.max_tokens = 256, .bench_prompt = 128, .bench_generate = 32, .feed = 1 << 20,
                     .sampling = {.temperature = 0.7f, .top_p = 0.8f, .top_k = 20, .seed = (uint64_t)(now_ms() * 1e3)}};
    if (!read_args(argc, argv, &a)) return complain("use/param", usage);
    if (!strcmp(a.command, "quantize")) return run_quantize(&a);
    a.engine.inspect = strcmp(a.command, "info") == 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, a.command) != 0) continue;
        double start = now_ms();
        struct quern_engine *e = load(&a);
        a.load_ms = now_ms() - start;
        int status = e ? commands[i].run(e, &a) : 1;
        quern_free(e);
        return status;
    }
    return complain("use/param", usage);
}
