/* SPDX-License-Identifier: MIT
 *
 * The native command line, for development, tests and sanitizers. It has the npm package's commands that need no
 * server, no store and no chat template (the template engine is written in JavaScript). It reads a file in chunks,
 * exactly as a page does. Exit status 0, or 1 with one line `quern: CODE: sentence` on stderr.
 */
#include "cli/cli_args.h"
#include "cli/cli_described.h"
#include "cli/cli_files.h"
#include "cli/cli_grammar.h"
#include "cli/cli_output.h"
#include "cli/cli_process.h"
#include "cli/cli_quantize.h"
#include "cli/cli_terminal.h"
#include "cli/cli_vision.h"
#include "quern.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A running command. */
struct job {
    struct args args;
    struct quern_options engine;
    double load_ms;
};

static int complain_engine(const struct quern_engine *e)
{
    const struct error *err = quern_error(e);
    return complain(status_name(err->code), err->message);
}

/* --- options ----------------------------------------------------------------------------------------------- */

static int whole(const struct args *a, enum option option, double otherwise)
{
    double v = args_number(a, option, otherwise);
    return v < INT32_MAX ? (int)v : INT32_MAX;
}

static struct quern_options engine_options(const struct args *a)
{
    static const enum quern_kv kv[] = {QUERN_KV_F16, QUERN_KV_Q8, QUERN_KV_F32};
    static const enum quern_quantize types[] = {QUERN_AS_STORED, QUERN_TO_Q8, QUERN_TO_Q4, QUERN_AUTO};
    return (struct quern_options){
        .threads = whole(a, OPT_THREADS, 0),
        .context_size = whole(a, OPT_CONTEXT, 0),
        .kv = kv[whole(a, OPT_KV, 0)],
        .chunk = whole(a, OPT_CHUNK, 0),
        .scalar = a->given[OPT_VARIANT] && a->number[OPT_VARIANT] == 0,
        .memory_limit = (uint64_t)args_number(a, OPT_MEMORY, 0),
        .quantize = types[whole(a, OPT_QUANTIZE, 0)],
        .embeddings = types[(int)a->embeddings],
        .profile = a->given[OPT_PROFILE],
        .inspect = a->command == COMMAND_INFO,
        .max_pixels = args_number(a, OPT_MAX_PIXELS, 0),
    };
}

/* Values that are not given come from the model, as in the npm package. */
static struct sampler_params sampling(const struct quern_engine *e, const struct args *a)
{
    struct sampler_params p = quern_defaults(e);
    p.temperature = (float)args_number(a, OPT_TEMPERATURE, (double)p.temperature);
    p.top_p = (float)args_number(a, OPT_TOP_P, (double)p.top_p);
    p.top_k = whole(a, OPT_TOP_K, p.top_k);
    p.min_p = (float)args_number(a, OPT_MIN_P, (double)p.min_p);
    p.repeat_penalty = (float)args_number(a, OPT_REPEAT_PENALTY, (double)p.repeat_penalty);
    p.presence_penalty = (float)args_number(a, OPT_PRESENCE_PENALTY, (double)p.presence_penalty);
    p.seed = (uint64_t)args_number(a, OPT_SEED, floor(now_ms() * 1e3));
    return p;
}

enum { FEED_DEFAULT = 1 << 20 }; /* bytes of the file that are fed at once */

/* --- loading ------------------------------------------------------------------------------------------------- */

static int feed_file(struct quern_engine *e, FILE *f, size_t chunk, bool inspect)
{
    uint8_t *buffer = malloc(chunk);
    if (!buffer) return ERR_MEM_LOAD;
    int status = OK;
    for (size_t n; !status && !(inspect && quern_file_size(e)) && (n = fread(buffer, 1, chunk, f)) > 0;)
        status = quern_feed(e, buffer, n);
    free(buffer);
    return status;
}

static void complain_of_file(const char *path)
{
    char sentence[512];
    snprintf(sentence, sizeof sentence, "The file '%.400s' is missing or cannot be read.", path);
    complain("use/param", sentence);
}

/* Checks that all files exist, and adds their sizes to the engine's options. The last file is the projector, if one was
 * given. */
static bool measure_files(struct job *j, const struct cli_files *files)
{
    bool vision = j->args.given[OPT_VISION];
    if (files->failed) return complain("mem/load", "Not enough memory for the list of files."), false;
    j->engine.files = files->n - vision;
    for (int i = 0; i < files->n; i++) {
        uint64_t size;
        FILE *f = cli_open(files->paths[i], &size);
        if (f) fclose(f);
        else return complain_of_file(files->paths[i]), false;
        *(i ? &j->engine.rest_size : &j->engine.file_size) += size;
        if (vision && i == j->engine.files) j->engine.vision_size = size;
    }
    return j->engine.files > 0 || (complain("use/param", "The folder holds no model."), false);
}

static int feed_all(struct quern_engine *e, const struct job *j, const struct cli_files *files)
{
    int status = OK;
    for (int i = 0; !status && i < files->n; i++) {
        uint64_t size;
        FILE *f = cli_open(files->paths[i], &size);
        if (!f) return ERR_PARAM;
        if (i > 0) status = i < j->engine.files ? quern_next_file(e, size) : quern_vision_next(e, size);
        struct bytes described = cli_described(files->paths[i]);
        size_t piece = (size_t)args_number(&j->args, OPT_FEED, FEED_DEFAULT);
        if (!status)
            status = described.data ? quern_feed(e, described.data, described.size)
                                    : feed_file(e, f, piece, j->engine.inspect);
        free((void *)described.data);
        fclose(f);
    }
    return status ? status : quern_finish(e);
}

/* Loads the model; returns NULL after an error message. */
static struct quern_engine *load(struct job *j)
{
    struct cli_files files = cli_files(j->args.words[0]);
    struct quern_engine *e = NULL;
    if (j->args.given[OPT_VISION]) cli_files_add(&files, j->args.text[OPT_VISION]);
    if (measure_files(j, &files)) {
        e = quern_new(&j->engine);
        if (!e) complain("mem/load", "Not enough memory to start.");
        else if (feed_all(e, j, &files)) {
            complain_engine(e);
            quern_free(e);
            e = NULL;
        }
    }
    cli_files_free(&files);
    return e;
}

/* --- text ------------------------------------------------------------------------------------------------------ */

/* The tokens of a plain text, with those that the model adds around it. The caller frees them; NULL when memory is
 * short. */
static int32_t *tokenize(struct quern_engine *e, struct bytes text, int *n)
{
    const int32_t *before, *after;
    int64_t n_before = quern_added(e, false, &before), n_after = quern_added(e, true, &after);
    int64_t own = quern_tokenize(e, text, QUERN_TEXT, 0, NULL, 0), count = n_before + own + n_after;
    int32_t *ids = own >= 0 && count < INT32_MAX ? malloc((size_t)(count + 1) * sizeof *ids) : NULL;
    *n = (int)count;
    if (ids) memcpy(ids, before, (size_t)n_before * sizeof *ids);
    if (ids) quern_tokenize(e, text, QUERN_TEXT, 0, ids + n_before, own);
    if (ids) memcpy(ids + n_before + own, after, (size_t)n_after * sizeof *ids);
    return ids;
}

/* Computes all pending tokens. */
static int drain(struct quern_engine *e, struct quern_sequence *s)
{
    int status = OK;
    while (!status && quern_sequence_pending(s) > 0) status = quern_step(e, 0);
    return status;
}

/* --- generation ---------------------------------------------------------------------------------------------- */

/* A reply that is being written. Its text is shown as it comes, except what may become a stop text. */
struct reply {
    const struct args *args;
    struct cli_grammar *grammar;
    bool said;         /* an error message has been printed */
    bool live;         /* the text is shown; else only stored */
    char *text;        /* the whole text; grows */
    size_t size, room;
    size_t shown;      /* bytes that have been shown; the rest is held back */
    int prompt_tokens, tokens, steps;
    double prefill_ms, decode_ms;
    const char *stop;  /* the stop text that ended the reply; NULL: none */
    bool failed;       /* memory was short */
    const char *finish;
};

static void show_until(struct reply *r, size_t end)
{
    if (r->live) show(r->text + r->shown, end - r->shown), fflush(stdout);
    r->shown = end;
}

static bool begins(const struct reply *r, size_t at, const char *stop, size_t n)
{
    return at + n <= r->size && !memcmp(r->text + at, stop, n);
}

/* Finds the stop text that is complete first (the longest, if several end there), sets r->stop, and returns its place;
 * SIZE_MAX: none. */
static size_t find_stop(struct reply *r)
{
    size_t first = SIZE_MAX, end = SIZE_MAX;
    for (int i = 0; i < r->args->n_stops; i++) {
        size_t n = strlen(r->args->stops[i]), at = r->shown;
        while (at + n <= r->size && !begins(r, at, r->args->stops[i], n)) at++;
        if (at + n > r->size || at + n > end || (at + n == end && at > first)) continue;
        first = at;
        end = at + n;
        r->stop = r->args->stops[i];
    }
    return first;
}

/* Bytes of the longest end of the text that begins a stop text. */
static size_t possible_stop(const struct reply *r)
{
    size_t longest = 0;
    for (int i = 0; i < r->args->n_stops; i++)
        for (size_t n = strlen(r->args->stops[i]) - 1; n > longest; n--)
            if (n <= r->size - r->shown && begins(r, r->size - n, r->args->stops[i], n)) longest = n;
    return longest;
}

/* Adds text; returns whether a stop text has ended the reply. */
static bool reply_add(struct reply *r, struct bytes text)
{
    if (r->stop) return true;
    if (r->size + text.size + 1 > r->room) {
        size_t room = (r->size + text.size + 1) * 2;
        char *grown = realloc(r->text, room);
        r->failed |= !grown;
        if (!grown) return true;
        r->text = grown;
        r->room = room;
    }
    if (text.size) memcpy(r->text + r->size, text.data, text.size);
    r->size += text.size;
    size_t stop = find_stop(r);
    if (r->stop) r->size = stop;
    show_until(r, r->stop ? stop : r->size - possible_stop(r));
    return r->stop;
}

/* Writes the reply token by token. The text of control tokens is not shown. */
static int write_reply(struct quern_engine *e, struct quern_sequence *s, double limit, struct reply *r)
{
    enum { CONTROL = 3 };
    int status = OK;
    while (r->tokens < limit) {
        int id = cli_grammar_pick(r->grammar, s, &r->said);
        if (id < 0) return id;
        if (quern_is_end(e, id)) return r->finish = "stop", OK;
        r->tokens++;
        if (quern_token_type(e, id) != CONTROL && reply_add(r, quern_stream(s, id))) return r->finish = "stop", OK;
        if (r->tokens >= limit) break;
        status = quern_sequence_push(s, id);
        if (!status) status = drain(e, s);
        if (status) return status;
        r->steps++;
    }
    return status;
}

/* Continues after the sequence's tokens. Returns OK, or a status of the engine. */
static int generate(struct quern_engine *e, struct quern_sequence *s, struct reply *r)
{
    const struct args *a = r->args;
    struct sampler_params params = sampling(e, a);
    double room = quern_plan(e)->context_size - r->prompt_tokens, wanted = args_number(a, OPT_MAX_TOKENS, room + 1),
           start = now_ms();
    r->finish = wanted > room ? "context" : "length";
    int status = drain(e, s);
    r->prefill_ms = now_ms() - start;
    if (status || wanted == 0) return status;
    if (!(status = quern_sample_begin(s, &params))) status = write_reply(e, s, wanted < room ? wanted : room, r);
    if (status) return status;
    r->decode_ms = now_ms() - start - r->prefill_ms;
    reply_add(r, quern_stream(s, -1));
    show_until(r, r->size);
    return r->failed ? ERR_MEM_LOAD : OK;
}

/* --- commands ------------------------------------------------------------------------------------------------ */

typedef int command_fn(struct quern_engine *e, const struct job *j);

static int run_info(struct quern_engine *e, const struct job *j)
{
    (void)j;
    const char *text = quern_info(e);
    show(text, strlen(text));
    putchar('\n');
    return 0;
}

static int complain_context(int n, int size)
{
    char text[100];
    snprintf(text, sizeof text, "The prompt has %d tokens, but the context holds %d, the reply included.", n, size);
    return complain("use/context", text);
}

/* A new sequence with a prompt's tokens; NULL after an error message. */
static struct quern_sequence *prompt_sequence(struct quern_engine *e, struct bytes text, int *n)
{
    int size = quern_plan(e)->context_size;
    int32_t *ids = tokenize(e, text, n);
    struct quern_sequence *s = ids ? quern_sequence_new(e, 0, 0) : NULL;
    bool refused = true;
    if (!s) complain("mem/load", "Not enough memory for the prompt.");
    else if (*n == 0) complain("use/empty", "There is nothing to do: the prompt is empty.");
    else if (*n >= size) complain_context(*n, size);
    else if (quern_sequence_set(s, ids, *n, QUERN_LAST) < 0) complain_engine(e);
    else refused = false;
    free(ids);
    if (!refused) return s;
    quern_sequence_free(s);
    return NULL;
}

/* Prints a Result of the npm package. */
static void print_result(const struct reply *r)
{
    printf("{\"text\":");
    show_json_text(r->text, r->size);
    printf(",\"thinking\":\"\",\"toolCalls\":[]");
    if (r->stop) printf(",\"stopText\":"), show_json_text(r->stop, strlen(r->stop));
    printf(",\"finishReason\":\"%s\",\"usage\":{\"promptTokens\":%d,", r->finish, r->prompt_tokens);
    printf("\"imageTokens\":0,\"cachedTokens\":0,\"completionTokens\":%d,\"thinkingTokens\":0},", r->tokens);
    printf("\"timings\":{\"waitMs\":0,\"prefillMs\":%.3f,\"decodeMs\":%.3f,\"tokensPerSecond\":%.3f}}\n", r->prefill_ms,
           r->decode_ms, r->steps ? 1e3 * r->steps / r->decode_ms : 0);
}

static int continue_prompt(struct quern_engine *e, const struct args *a, struct bytes prompt)
{
    struct reply r = {.args = a, .live = !a->given[OPT_JSON]};
    if (cli_grammar_open(e, a, &r.grammar)) return 1;
    struct quern_sequence *s = prompt_sequence(e, prompt, &r.prompt_tokens);
    int status = s ? generate(e, s, &r) : 1;
    if (!s || r.said) status = 1;
    else if (r.failed) complain("mem/load", "Not enough memory for the reply.");
    else if (status) complain_engine(e);
    else {
        if (a->given[OPT_JSON]) print_result(&r);
        else putchar('\n');
        fflush(stdout);
        status = cli_grammar_whole(r.grammar, r.finish);
    }
    cli_grammar_free(r.grammar);
    free(r.text);
    return status != 0;
}

/* Text from the standard input loses one line end at its end, which the writing program added. */
static int run_run(struct quern_engine *e, const struct job *j)
{
    const char *word = j->args.words[1];
    size_t size = strlen(word);
    char *input = strcmp(word, "-") ? NULL : terminal_input(&size);
    if (!strcmp(word, "-") && !input) return 1;
    if (input && size && input[size - 1] == '\n') size -= size > 1 && input[size - 2] == '\r' ? 2 : 1;
    int status = continue_prompt(e, &j->args, (struct bytes){(const uint8_t *)(input ? input : word), size});
    free(input);
    return status;
}

static void print_tokens(struct quern_engine *e, const int32_t *ids, int n, bool only_ids)
{
    for (int i = 0; i < n; i++) {
        struct bytes text = quern_token(e, ids[i]);
        printf(i && only_ids ? " %d" : "%d", ids[i]);
        if (only_ids) continue;
        putchar(' ');
        show_json_text((const char *)text.data, text.size);
        putchar('\n');
    }
    if (only_ids) putchar('\n');
}

static int run_tokenize(struct quern_engine *e, const struct job *j)
{
    bool nul_ended = j->args.given[OPT_NUL];
    size_t size;
    int status = 0;
    char *text = terminal_input(&size);
    if (!text) return 1;
    for (size_t at = 0, end; !status && at <= size; at = end + 1) {
        const char *nul = nul_ended ? memchr(text + at, 0, size - at) : NULL;
        end = nul ? (size_t)(nul - text) : size;
        if (nul_ended && at == size) break; /* nothing follows the last NUL */
        int n;
        int32_t *ids = tokenize(e, (struct bytes){(const uint8_t *)text + at, end - at}, &n);
        if (ids) print_tokens(e, ids, n, j->args.given[OPT_IDS] || nul_ended);
        else status = complain("mem/load", "Not enough memory for the text.");
        free(ids);
    }
    free(text);
    return status;
}

/* Reads decimal numbers with spaces or one comma between them. The caller frees them; NULL after an error message. */
static int32_t *read_ids(const char *text, int *n)
{
    static const char spaces[] = " \t\r\n\f\v";
    int32_t *ids = malloc((strlen(text) / 2 + 1) * sizeof *ids);
    bool comma = true, good = true;
    *n = 0;
    text += strspn(text, spaces);
    while (ids && good && *text) {
        size_t digits = strspn(text, "0123456789"), space = strspn(text + digits, spaces);
        long id = strtol(text, NULL, 10); /* LONG_MAX if it is larger */
        good = digits > 0;
        ids[(*n)++] = id < INT32_MAX ? (int32_t)id : INT32_MAX;
        text += digits + space;
        comma = *text == ',';
        if (comma) text += 1 + strspn(text + 1, spaces);
    }
    if (!ids) complain("mem/load", "Not enough memory for the tokens.");
    else if (!good || comma)
        complain("use/param", "--tokens must be token ids, decimal numbers with a space or a comma between them.");
    else return ids;
    free(ids);
    return NULL;
}

/* Writes the rows of logits of each step. Returns OK or a status of the engine; *failed gets the errno of the file. */
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

static int run_logits(struct quern_engine *e, const struct job *j)
{
    const struct args *a = &j->args;
    int n, status = OK;
    int32_t *ids = read_ids(a->text[OPT_TOKENS], &n);
    if (!ids) return 1;
    struct quern_sequence *s = quern_sequence_new(e, 0, 0);
    struct output o = {.fd = -1};
    struct error err;
    int failed = s ? output_open(&o, a->text[OPT_OUT]) : ENOMEM;
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

static int run_vision(struct quern_engine *e, const struct job *j)
{
    int status =
        cli_vision(e, j->args.text[OPT_IMAGE], args_number(&j->args, OPT_MAX_PIXELS, 0), j->args.text[OPT_OUT]);
    return status < 0 ? complain_engine(e) : status;
}

/* --- bench ------------------------------------------------------------------------------------------------------ */

/* Measures the milliseconds for n tokens at once, then for `more` tokens one by one. */
static int time_tokens(struct quern_engine *e, int n, int more, double *prefill, double *decode)
{
    struct quern_sequence *s = quern_sequence_new(e, 0, 0);
    int32_t *ids = calloc((size_t)n + 1, sizeof *ids);
    int status = s && ids ? OK : ERR_MEM_LOAD;
    /* n in the sum: prompts of other lengths have no common prefix */
    for (int i = 0; ids && i < n; i++) ids[i] = (i * 31 + n) % quern_vocab_size(e);
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
        printf("%-36s %8.0f %10.2f %6.1f %8.1f %8.1f %9.0f\n", profile_operation(p, i), c.calls, c.ms,
               100 * c.ms / all->ms, c.macs / c.ms / 1e6, c.bytes / c.ms / 1e6, c.barriers);
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

/* Prints one phase; `ms` is its time by the clock. */
static void print_phase(const struct profile *p, const char *name, enum profile_phase phase, double ms)
{
    struct profile_cost all = profile_cost(p, phase, PROFILE_ALL, PROFILE_ALL);
    double tokens = profile_tokens(p, phase);
    if (all.calls == 0) return;
    printf(
        "\n%s of %.0f tokens: %.2f of %.2f ms in operations, %.1f barriers per token, %.2f us each when empty; %d threads in the end\n",
        name, tokens, all.ms, ms, all.barriers / tokens, profile_barrier_us(p), profile_threads(p));
    print_operations(p, phase, &all);
    print_layers(p, phase);
}

static int run_bench(struct quern_engine *e, const struct job *j)
{
    const struct args *a = &j->args;
    int prompt = whole(a, OPT_PROMPT, 128), generate = whole(a, OPT_GENERATE, 32);
    bool json = a->given[OPT_JSON];
    double prefill, decode;
    uint64_t used, peak;
    struct profile *p = quern_profile(e);
    time_tokens(e, 8, 4, &prefill, &decode); /* warm up */
    if (p) profile_reset(p);
    if (time_tokens(e, prompt, generate, &prefill, &decode)) return complain_engine(e);
    quern_memory(e, &used, &peak);
    const char *form =
        json
            ? "{\"prefill_tps\":%.2f,\"decode_tps\":%.2f,\"load_ms\":%.1f,\"peak_bytes\":%llu,\"variant\":\"%s\",\"threads\":%d"
            : "prefill %.2f tokens/s, decode %.2f tokens/s, load %.1f ms, peak %llu bytes, %s, %d threads\n";
    printf(form, prompt * 1e3 / prefill, generate * 1e3 / decode, j->load_ms, (unsigned long long)peak,
           j->engine.scalar ? "scalar" : "simd", max_int(j->engine.threads, 1));
    if (p && json) printf(",\"profile\":%s", profile_json(p));
    if (json) puts("}");
    if (!p || json) return 0;
    print_phase(p, "prefill", PROFILE_PREFILL, prefill);
    print_phase(p, "decode", PROFILE_DECODE, decode);
    return 0;
}

/* --- quantize ---------------------------------------------------------------------------------------------------- */

/* Draws a bar that overwrites itself, on terminals only. */
static void show_progress(double part)
{
    enum { WIDTH = 40 };
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r[%-*.*s] %3.0f %%", WIDTH, (int)(part * WIDTH), "########################################",
            100 * part);
    if (part == 1) fputc('\n', stderr);
}

static int run_quantize(const struct args *a)
{
    struct quantizing *q = quantizing_new(a->words[0], a->words[1], a->text[OPT_TYPE], a->text[OPT_IMATRIX],
                                          whole(a, OPT_THREADS, 1));
    if (!q) return complain("mem/load", "Not enough memory to convert this model.");
    int status = 1;
    process_note_signals();
    while (status == 1 && !process_signal()) {
        status = quantizing_step(q);
        show_progress(quantizing_progress(q));
    }
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr); /* clears an unfinished bar */
    if (status < 0) complain(quantizing_code(q), quantizing_message(q));
    if (status > 0) complain("use/aborted", "The conversion was stopped; nothing was kept of it.");
    quantizing_free(q);
    return status > 0 ? 128 + process_signal() : status != 0; /* as shells report signals */
}

/* Checks the options that a command requires. */
static int check_required(const struct args *a)
{
    if (a->command == COMMAND_QUANTIZE && !a->given[OPT_TYPE]) return complain("use/param", "--type is missing.");
    if (a->command == COMMAND_LOGITS && !a->given[OPT_TOKENS]) return complain("use/param", "--tokens is missing.");
    if (a->command == COMMAND_VISION && !a->given[OPT_IMAGE]) return complain("use/param", "--image is missing.");
    if ((a->command == COMMAND_LOGITS || a->command == COMMAND_VISION) && !a->given[OPT_OUT])
        return complain("use/param", "--out is missing.");
    return 0;
}

int main(int argc, char **argv)
{
    static command_fn *const commands[COMMANDS] = {
        [COMMAND_RUN] = run_run,           [COMMAND_INFO] = run_info,     [COMMAND_BENCH] = run_bench,
        [COMMAND_TOKENIZE] = run_tokenize, [COMMAND_LOGITS] = run_logits, [COMMAND_VISION] = run_vision,
    };
    struct job j;
    int status;
    if (!args_read(argc, argv, &j.args, &status)) return end_output(status);
    if (check_required(&j.args)) return 1;
    if (j.args.command == COMMAND_QUANTIZE) return run_quantize(&j.args);
    j.engine = engine_options(&j.args);
    double start = now_ms();
    struct quern_engine *e = load(&j);
    j.load_ms = now_ms() - start;
    status = e ? commands[j.args.command](e, &j) : 1;
    quern_free(e);
    return end_output(status);
}
