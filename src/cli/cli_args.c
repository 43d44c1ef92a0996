/* SPDX-License-Identifier: MIT
 *
 * Reads the command line. Words and options are recognised, and errors reported, as in Node (util.parseArgs).
 */
#include "cli/cli_args.h"

#include "cli/cli_terminal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind { FLAG, TEXT, WHOLE, WHOLE_QUOTED, BETWEEN, ABOVE, NAME, BYTES, QUANTIZE, STOPS };

static const double MOST = 9007199254740991; /* 2^53-1 */

struct option_row {
    const char *name, *value, *text;
    enum kind kind;
    double least, most;
    const char *names[4];
};

static const struct option_row options[OPTIONS] = {
#define ROW(id, name, value, kind, least, most, text, ...) \
    [OPT_##id] = {name, value, text, kind, least, most, {__VA_ARGS__}},
    CLI_OPTIONS(ROW)
#undef ROW
};

#define BIT(option) (UINT64_C(1) << (option))
#define SAMPLING \
    (BIT(OPT_MAX_TOKENS) | BIT(OPT_TEMPERATURE) | BIT(OPT_TOP_P) | BIT(OPT_TOP_K) | BIT(OPT_MIN_P) | \
     BIT(OPT_REPEAT_PENALTY) | BIT(OPT_PRESENCE_PENALTY) | BIT(OPT_SEED) | BIT(OPT_STOP))
#define LIMITS (BIT(OPT_SCHEMA) | BIT(OPT_GRAMMAR) | BIT(OPT_REGEX) | BIT(OPT_JSON_REPLY))
#define LOAD \
    (BIT(OPT_CONTEXT) | BIT(OPT_MEMORY) | BIT(OPT_THREADS) | BIT(OPT_VARIANT) | BIT(OPT_KV) | BIT(OPT_QUANTIZE) | \
     BIT(OPT_CHUNK) | BIT(OPT_FEED))

static const struct {
    const char *name, *usage, *words, *text, *more;
    int n_words;
    uint64_t options;
} commands[COMMANDS] = {
    [COMMAND_RUN] = {"run", "MODEL PROMPT", "MODEL and PROMPT", "continues PROMPT",
                     " Where it is '-' it is read from the standard input, without\n"
                     "the line end at its end. One that begins with a dash comes behind '--'.",
                     2, SAMPLING | LIMITS | BIT(OPT_JSON) | LOAD},
    [COMMAND_INFO] = {"info", "MODEL", "MODEL", "says what a model is and what memory it takes; reads no weights", "",
                      1, BIT(OPT_JSON) | BIT(OPT_VISION) | LOAD},
    [COMMAND_QUANTIZE] = {"quantize", "MODEL OUT.gguf --type TYPE", "MODEL and OUT.gguf",
                          "writes a model with another weight type",
                          " MODEL has its weights in F32, F16 or BF16; it may also be\n"
                          "a projector (mmproj). Download a model from an address first, all files of it.",
                          2,
                          BIT(OPT_TYPE) | BIT(OPT_IMATRIX) | BIT(OPT_THREADS)},
    [COMMAND_BENCH] = {"bench", "MODEL", "MODEL", "measures speed", "", 1,
                       BIT(OPT_PROMPT) | BIT(OPT_GENERATE) | BIT(OPT_PROFILE) | BIT(OPT_JSON) | LOAD},
    [COMMAND_TOKENIZE] = {"tokenize", "MODEL < text", "MODEL", "shows the tokens of a text; reads no weights", "", 1,
                          BIT(OPT_IDS) | BIT(OPT_NUL) | LOAD},
    [COMMAND_LOGITS] = {"logits", "MODEL --tokens IDS --out FILE", "MODEL",
                        "writes the scores of what could follow each token", "", 1,
                        BIT(OPT_TOKENS) | BIT(OPT_OUT) | LOAD},
    [COMMAND_VISION] =
        {"vision", "MODEL --image FILE --out FILE", "MODEL", "writes what a model makes of an image",
         " OUT gets 32-bit floats, little-endian: each visual token's row,\n"
         "then its additions after the first layers. Images other than PPM, and conversations with images, need\n"
         "decoders and the chat template, which this native program does not have: npx quern has them.",
         1, BIT(OPT_VISION) | BIT(OPT_IMAGE) | BIT(OPT_MAX_PIXELS) | BIT(OPT_OUT) | LOAD},
};

static const char about[] =
    "MODEL is one of these:\n"
    "- the path of a GGUF file, or of the first part of one that is split;\n"
    "- the path of a folder with safetensors and JSON files;\n"
    "- the path of a qwen3.c checkpoint, with its .tokenizer file beside it.\n";

/* --- output -------------------------------------------------------------------------------------------------- */

static bool refuse(const char *form, ...) __attribute__((format(printf, 1, 2)));
static bool refuse(const char *form, ...)
{
    char sentence[512];
    va_list list;
    va_start(list, form);
    vsnprintf(sentence, sizeof sentence, form, list);
    va_end(list);
    complain("use/param", sentence);
    return false;
}

/* Prints names in one column and their texts in the next. */
static void print_options(uint64_t set)
{
    int width = 0;
    for (int i = 0; i < OPTIONS; i++)
        if (set & BIT(i)) width = max_int(width, (int)(strlen(options[i].name) + strlen(options[i].value)) + 3);
    for (int i = 0; i < OPTIONS; i++) {
        const struct option_row *o = &options[i];
        char name[64];
        if (!(set & BIT(i))) continue;
        snprintf(name, sizeof name, "--%s%s%s", o->name, *o->value ? " " : "", o->value);
        fprintf(stdout, "  %-*s  %s\n", width, name, o->text);
    }
}

static void print_command(enum command c)
{
    const char *text = commands[c].text;
    fprintf(stdout, "usage: quern %s %s [options]\n\n", commands[c].name, commands[c].usage);
    fprintf(stdout, "%c%s.%s\n\n", *text - 'a' + 'A', text + 1, commands[c].more);
    print_options(commands[c].options);
    fprintf(stdout, "\n%s", about);
}

static void print_general(void)
{
    int width = 0;
    for (int c = 0; c < COMMANDS; c++)
        width = max_int(width, (int)(strlen(commands[c].name) + strlen(commands[c].usage)) + 7);
    fputs("usage: quern COMMAND [options]\n\n", stdout);
    for (int c = 0; c < COMMANDS; c++) {
        char usage[80];
        snprintf(usage, sizeof usage, "quern %s %s", commands[c].name, commands[c].usage);
        fprintf(stdout, "  %-*s  %s\n", width, usage, commands[c].text);
    }
    fprintf(
        stdout,
        "\nquern help COMMAND shows the options of a command.\n\n%s\nFailures are one line on stderr, and the exit code 1.\n",
        about);
}

/* Returns COMMANDS if there is no such command. */
static enum command find_command(const char *name)
{
    int c = 0;
    while (c < COMMANDS && strcmp(commands[c].name, name) != 0) c++;
    return (enum command)c;
}

static bool unknown_command(const char *name)
{
    char list[128] = "";
    if (!strcmp(name, "chat"))
        return refuse(
            "'chat' needs the model's chat template, which this native program does not render; npx quern chat does.");
    for (int c = 0; c < COMMANDS; c++) {
        strcat(list, c ? ", " : "");
        strcat(list, commands[c].name);
    }
    return refuse("'%.64s' is not a command; these are: %s (quern help).", name, list);
}

/* Whether these arguments ask for help; prints it then. After "--" nothing is an option. */
static bool help(int argc, char **argv)
{
    bool named = argc > 1 && !strcmp(argv[1], "help"), asked = named;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        asked |= !strcmp(argv[i], "--help") || !strcmp(argv[i], "-h");
    const char *name = argc < 2 ? NULL : named ? argc > 2 ? argv[2] : NULL : argv[1];
    if (!name || !strcmp(name, "--help") || !strcmp(name, "-h")) return print_general(), true;
    if (!asked || find_command(name) == COMMANDS) return false;
    print_command(find_command(name));
    return true;
}

/* --- values -------------------------------------------------------------------------------------------------- */

/* Reads decimal digits, a point and an exponent, and nothing else that strtod() accepts. */
static bool parse_number(const char *text, double *out)
{
    const char *p = text + (*text == '+' || *text == '-');
    size_t whole = strspn(p, "0123456789");
    p += whole;
    size_t rest = *p == '.' ? strspn(p + 1, "0123456789") : 0;
    if (*p == '.') p += 1 + rest;
    if (whole + rest == 0) return false;
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '+' || p[1] == '-');
        size_t digits = strspn(p, "0123456789");
        if (digits == 0) return false;
        p += digits;
    }
    *out = strtod(text, NULL);
    return !*p;
}

static bool read_number(const struct option_row *o, const char *text, double *out)
{
    char most[24], quote[80] = "";
    if (!parse_number(text, out)) return refuse("--%s must be a number, not '%.64s'.", o->name, text);
    bool whole = o->kind == WHOLE || o->kind == WHOLE_QUOTED,
         above = o->kind == ABOVE ? *out > o->least : *out >= o->least;
    if (above && *out <= o->most && (!whole || *out == floor(*out))) return true;
    if (o->kind == BETWEEN) return refuse("--%s must be a number from %g to %g.", o->name, o->least, o->most);
    if (o->kind == ABOVE) return refuse("--%s must be a number above %g and up to %g.", o->name, o->least, o->most);
    snprintf(most, sizeof most, o->most == MOST ? "2^53-1" : "%.0f", o->most);
    if (o->kind == WHOLE_QUOTED) snprintf(quote, sizeof quote, ", not '%.64s'", text);
    return refuse("--%s must be a whole number from %.0f to %s%s.", o->name, o->least, most, quote);
}

/* Reads 4GB, 4GiB, 512MB, or a number of bytes. */
static bool read_bytes(const struct option_row *o, const char *text, double *out)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},     {"b", 1},        {"kb", 1e3},     {"mb", 1e6},     {"gb", 1e9},
                 {"tb", 1e12}, {"kib", 0x1p10}, {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40}};
    size_t digits = strspn(text, "0123456789"),
           rest = digits && text[digits] == '.' ? strspn(text + digits + 1, "0123456789") : 0;
    const char *unit = text + digits + (rest ? 1 + rest : 0);
    unit += *unit == ' ' && unit[1];
    for (size_t i = 0; digits && i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(unit, units[i].name) != 0) continue;
        *out = floor(strtod(text, NULL) * units[i].bytes);
        if (*out >= o->least && *out <= o->most) return true;
        return refuse("--%s must be a whole number from 1 to 2^53-1.", o->name);
    }
    return refuse("--%s must be a number of bytes such as 4GB, 4GiB or 512MB, not '%.64s'.", o->name, text);
}

/* The index of a name of n letters in a list; -1: none. */
static int find_name(const char *const names[4], const char *text, size_t n)
{
    for (int i = 0; i < 4 && names[i]; i++)
        if (strlen(names[i]) == n && !memcmp(names[i], text, n)) return i;
    return -1;
}

static bool read_name(const struct option_row *o, const char *text, double *out)
{
    char list[80] = "";
    int found = find_name(o->names, text, strlen(text));
    for (int i = 0; i < 4 && o->names[i]; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s'%s'", i ? ", " : "", o->names[i]);
    *out = found;
    return found >= 0 || refuse("--%s must be one of %s.", o->name, list);
}

/* Reads one name for all, or WEIGHTS/EMBEDDINGS. */
static bool read_quantize(const struct option_row *o, const char *text, struct args *a)
{
    const char *slash = strchr(text, '/'), *rest = slash ? slash + 1 : text;
    int weights = find_name(o->names, text, slash ? (size_t)(slash - text) : strlen(text)),
        embeddings = find_name(o->names, rest, strlen(rest));
    a->number[OPT_QUANTIZE] = weights;
    a->embeddings = embeddings;
    bool known = weights >= 0 && embeddings >= 0, automatic = weights == 3 || embeddings == 3;
    return (known && !(slash && automatic)) ||
           refuse(
               "--%s must be none, q8, q4 or auto, or two of the first three with a slash between, for weights and embeddings, not '%.64s'.",
               o->name, text);
}

/* Counts UTF-16 units, as JavaScript does. */
static int count_letters(const char *text)
{
    int n = 0;
    for (; *text; text++) n += ((uint8_t)*text & 0xC0) != 0x80 ? (uint8_t)*text >= 0xF0 ? 2 : 1 : 0;
    return n;
}

static bool read_stop(const char *text, struct args *a)
{
    if (!*text) return refuse("--stop must not be empty: every reply starts with the empty text.");
    if (a->n_stops == STOPS_MOST)
        return refuse("--stop has over %d texts, at most %d are possible.", STOPS_MOST, STOPS_MOST);
    if (count_letters(text) > STOP_LETTERS_MOST)
        return refuse("--stop has a text of over %d characters.", STOP_LETTERS_MOST);
    a->stops[a->n_stops++] = text;
    return true;
}

static bool read_value(enum option option, const char *text, struct args *a)
{
    const struct option_row *o = &options[option];
    a->given[option] = true;
    a->text[option] = text;
    switch (o->kind) {
        case FLAG: case TEXT: return true;
        case NAME: return read_name(o, text, &a->number[option]);
        case BYTES: return read_bytes(o, text, &a->number[option]);
        case QUANTIZE: return read_quantize(o, text, a);
        case STOPS: return read_stop(text, a);
        default: return read_number(o, text, &a->number[option]);
    }
}

/* --- words and options ----------------------------------------------------------------------------------------- */

/* Finds an option by a word of n letters, dashes included. Returns OPTIONS if there is none. */
static int find_option(const char *word, size_t n)
{
    int option = 0;
    for (; option < OPTIONS; option++)
        if (n > 2 && strlen(options[option].name) == n - 2 && !memcmp(word, "--", 2) &&
            !memcmp(word + 2, options[option].name, n - 2))
            break;
    return option;
}

/* Reads the option argv[*i], which begins with a dash, and its value. */
static bool read_option(int argc, char **argv, int *i, struct args *a)
{
    const char *word = argv[*i], *command = commands[a->command].name,
               *value = strncmp(word, "--", 2) ? NULL : strchr(word, '=');
    int n = (int)(value ? (size_t)(value - word) : strlen(word)), option = find_option(word, (size_t)n);
    if (option == OPTIONS || !(commands[a->command].options & BIT(option)))
        return refuse("Unknown option '%.*s' (quern help %s).", word[1] == '-' ? min_int(n, 100) : 2, word, command);
    const struct option_row *o = &options[option];
    if (value && o->kind == FLAG)
        return refuse("Option '--%s' does not take an argument (quern help %s).", o->name, command);
    if (value) return read_value((enum option)option, value + 1, a);
    if (o->kind == FLAG) return read_value((enum option)option, NULL, a);
    if (++*i == argc) return refuse("Option '--%s <value>' argument missing (quern help %s).", o->name, command);
    if (argv[*i][0] == '-' && argv[*i][1])
        return refuse("Option '--%s' argument is ambiguous (quern help %s).", o->name, command);
    return read_value((enum option)option, argv[*i], a);
}

static bool check_words(const struct args *a, int found)
{
    int wanted = commands[a->command].n_words;
    if (found == wanted) return true;
    return refuse("'quern %s' takes %s, but %d %s given%s (quern help %s).", commands[a->command].name,
                  commands[a->command].words, found, found == 1 ? "word was" : "words were",
                  found > wanted ? "; put what has spaces into quotes" : "", commands[a->command].name);
}

static bool read_all(int argc, char **argv, struct args *a)
{
    bool only_words = false;
    int found = 0;
    for (int i = 2; i < argc; i++) {
        bool word = only_words || argv[i][0] != '-' || !argv[i][1];
        if (!only_words && !strcmp(argv[i], "--")) only_words = true;
        else if (!word && !read_option(argc, argv, &i, a)) return false;
        else if (word && found++ < 2) a->words[found - 1] = argv[i];
    }
    a->n_words = found;
    return check_words(a, found);
}

bool args_read(int argc, char **argv, struct args *a, int *status)
{
    *a = (struct args){0};
    *status = 0;
    if (argc > 1 && !strcmp(argv[1], "--version")) return fprintf(stdout, "%s\n", QUERN_VERSION), false;
    if (help(argc, argv)) return false;
    *status = 1;
    const char *name = !strcmp(argv[1], "help") ? argv[2] : argv[1];
    a->command = find_command(name);
    if (a->command == COMMANDS) return unknown_command(name);
    return read_all(argc, argv, a);
}

double args_number(const struct args *a, enum option option, double otherwise)
{
    return a->given[option] ? a->number[option] : otherwise;
}
