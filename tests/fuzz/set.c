/* SPDX-License-Identifier: MIT
 *
 * Loads inputs of several files, and mutates one of the files: JSON (also the header of a safetensors file) by its
 * values, other contents by bytes, with correct sizes. One input in sixteen goes to libFuzzer's own mutations as a
 * whole.
 */
#include "set.h"

enum { ROOM = 1 << 16, SPANS = 4096, PREFIX = 8 };

struct set {
    int n;
    struct bytes files[SET_FILES];
};

static bool read_set(const uint8_t *data, size_t size, struct set *s)
{
    *s = (struct set){.n = size ? data[0] : 0};
    if (s->n < 1 || s->n > SET_FILES || size < 1 + 3 * (size_t)s->n) return false;
    const uint8_t *at = data + 1 + 3 * s->n, *end = data + size;
    for (int i = 0; i < s->n; i++) {
        const uint8_t *entry = data + 1 + 3 * i;
        size_t wanted = entry[0] | (size_t)entry[1] << 8 | (size_t)entry[2] << 16, there = (size_t)(end - at);
        s->files[i] = (struct bytes){at, wanted < there ? wanted : there};
        at += s->files[i].size;
    }
    return true;
}

/* Returns 0 if it does not fit. */
static size_t write_set(const struct set *s, uint8_t *out, size_t room)
{
    size_t size = 1 + 3 * (size_t)s->n;
    for (int i = 0; i < s->n; i++) {
        size_t n = s->files[i].size;
        if (size > room || n > room - size) return 0;
        for (int byte = 0; byte < 3; byte++) out[1 + 3 * i + byte] = (uint8_t)(n >> 8 * byte);
        memcpy(out + size, s->files[i].data, n);
        size += n;
    }
    out[0] = (uint8_t)s->n;
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct set s;
    if (read_set(data, size, &s)) check_load(s.files, s.n, seed_of(data, size));
    return 0;
}

/* --- JSON ------------------------------------------------------------------------------------------------ */

static uint64_t *source; /* state of the random numbers */

static size_t pick(size_t n) { return (size_t)below(source, n); }

/* A text that changes its length, and its tokens: strings, words and marks. */
struct json {
    uint8_t *text;
    size_t size, room;
    struct {
        size_t at, end;
    } tokens[SPANS];
    size_t n;
};

static bool is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
           c == '.';
}

static size_t token_end(const struct json *j, size_t at)
{
    size_t end = at + 1;
    if (j->text[at] == '"') {
        while (end < j->size && j->text[end] != '"') end += j->text[end] == '\\' ? 2 : 1;
        end++;
    } else if (is_word(j->text[at])) {
        while (end < j->size && is_word(j->text[end])) end++;
    }
    return end < j->size ? end : j->size;
}

static void find_tokens(struct json *j)
{
    j->n = 0;
    for (size_t at = 0; at < j->size && j->n < SPANS; at++) {
        if (j->text[at] <= ' ') continue;
        j->tokens[j->n].at = at;
        at = j->tokens[j->n++].end = token_end(j, at);
        at--;
    }
}

static uint8_t mark(const struct json *j, size_t token) { return token < j->n ? j->text[j->tokens[token].at] : 0; }

/* The token after the value that begins here. */
static size_t value_end(const struct json *j, size_t token)
{
    int depth = 0;
    do {
        uint8_t c = mark(j, token++);
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    } while (depth > 0 && token < j->n);
    return token < j->n ? token : j->n;
}

/* Replaces a part of the text by n bytes from other memory. */
static void replace(struct json *j, size_t at, size_t end, const void *bytes, size_t n)
{
    if (j->size - (end - at) + n > j->room) return;
    memmove(j->text + at + n, j->text + end, j->size - end);
    memcpy(j->text + at, bytes, n);
    j->size = j->size - (end - at) + n;
}

static size_t from(const struct json *j, size_t token) { return token < j->n ? j->tokens[token].at : j->size; }
static size_t behind(const struct json *j, size_t token) { return token ? j->tokens[token - 1].end : 0; }

static void put_literal(struct json *j, size_t token, size_t end)
{
    static const char *const literals[] = {
        "0",
        "1",
        "2",
        "-1",
        "3",
        "32",
        "127",
        "128",
        "256",
        "65536",
        "2147483647",
        "2147483648",
        "4294967296",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "1e2",
        "1.0",
        "0.5",
        "1e-6",
        "1e308",
        "1e999",
        "007",
        "true",
        "false",
        "null",
        "\"\"",
        "\"4\"",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "[]",
        "{}",
        "[[",
        "[0]",
        "[0,0]",
        "\"F16\"",
        "\"F32\"",
        "\"BF16\"",
        "\"F8_E4M3\"",
        "\"F4\"",
        "\"I8\"",
    };
    const char *text = literals[pick(sizeof literals / sizeof *literals)];
    replace(j, from(j, token), behind(j, end), text, strlen(text));
}

/* Replaces a value by another one; or repeats or removes an entry ("key": value, or an element). */
static void move_value(struct json *j, size_t token, size_t end, size_t what)
{
    static uint8_t copy[ROOM];
    bool key = mark(j, token) == '"' && mark(j, token + 1) == ':';
    size_t other = pick(j->n), entry = key ? value_end(j, token + 2) : end, at = from(j, token), size;
    if (what == 0) {
        size = behind(j, value_end(j, other)) - from(j, other);
        memcpy(copy, j->text + from(j, other), size);
        replace(j, at, behind(j, end), copy, size);
    } else if (what == 1) {
        size = behind(j, entry) - at;
        copy[size] = ',';
        memcpy(copy, j->text + at, size);
        replace(j, at, at, copy, size + 1);
    } else replace(j, at, mark(j, entry) == ',' ? from(j, entry + 1) : behind(j, entry), "", 0);
}

/* Changes the inside of a string, or a word, by libFuzzer's mutations. */
static void change_token(struct json *j, size_t token)
{
    uint8_t copy[256];
    size_t quote = mark(j, token) == '"', at = from(j, token) + quote, end = behind(j, token + 1);
    if (end < at + quote || end - at - quote > sizeof copy / 2) return;
    end -= quote;
    memcpy(copy, j->text + at, end - at);
    replace(j, at, end, copy, LLVMFuzzerMutate(copy, end - at, sizeof copy));
}

static size_t change_json(uint8_t *text, size_t size, size_t room)
{
    static struct json j;
    j.text = text, j.size = size, j.room = room;
    for (size_t n = 1 + pick(3); n; n--) {
        find_tokens(&j);
        if (j.n == 0 || j.size >= ROOM) return LLVMFuzzerMutate(text, j.size, room);
        size_t token = pick(j.n), what = pick(8), end = value_end(&j, token);
        if (what < 3) move_value(&j, token, end, what);
        else if (what < 5) change_token(&j, token);
        else put_literal(&j, token, end);
    }
    return j.size;
}

/* --- files ----------------------------------------------------------------------------------------------- */

/* The end of the data according to the header: the largest number that closes an entry. */
static size_t data_end(const uint8_t *text, size_t size)
{
    size_t end = 0, number = 0;
    for (size_t i = 0; i + 1 < size; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (text[i] == ']' && text[i + 1] == '}' && number > end) end = number;
        number = digit && number < ROOM ? 10 * number + text[i] - '0' : 0;
    }
    return end;
}

/* Changes the header of a safetensors file; its length (or a false one), the padding with spaces and usually the size
 * of the data are made to match. */
static size_t change_header(uint8_t *file, size_t size, size_t room)
{
    static uint8_t header[ROOM];
    uint64_t length;
    memcpy(&length, file, sizeof length);
    size_t old = (size_t)length, data = size - PREFIX - old;
    memcpy(header, file + PREFIX, old);
    size_t n = change_json(header, old, ROOM - 8);
    while (n % 8) header[n++] = ' ';
    size_t wanted = pick(4) ? data_end(header, n) : data, kept = data < wanted ? data : wanted;
    if (n > room - PREFIX || wanted > room - PREFIX - n) return size;
    memmove(file + PREFIX + n, file + PREFIX + old, kept);
    memset(file + PREFIX + n + kept, 0, wanted - kept);
    memcpy(file + PREFIX, header, n);
    length = n + (pick(32) ? 0 : pick(17) - 8);
    memcpy(file, &length, sizeof length);
    return PREFIX + n + wanted;
}

static size_t change_file(uint8_t *file, size_t size, size_t room)
{
    uint64_t length = 0;
    if (size >= PREFIX) memcpy(&length, file, sizeof length);
    bool header = size > PREFIX && file[PREFIX] == '{' && length <= size - PREFIX && length <= ROOM - 8;
    if (pick(8) == 0) return LLVMFuzzerMutate(file, size, room);
    if (header) return change_header(file, size, room);
    return size && file[0] == '{' ? change_json(file, size, room) : LLVMFuzzerMutate(file, size, room);
}

/* Removes a file, repeats it, or puts it in another one's place. */
static void change_set(struct set *s, int i)
{
    size_t what = pick(3);
    struct bytes f = s->files[i];
    int other = (int)pick((size_t)s->n);
    if (what == 0 && s->n > 1) memmove(&s->files[i], &s->files[i + 1], (size_t)(--s->n - i) * sizeof f);
    else if (what == 1 && s->n < SET_FILES) s->files[s->n++] = f;
    else s->files[i] = s->files[other], s->files[other] = f;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static uint8_t old[ROOM], fresh[2 * ROOM];
    uint64_t random = seed | 1ull << 32;
    struct set s;
    source = &random;
    if (size <= ROOM) memcpy(old, data, size);
    if (size > ROOM || pick(16) == 0 || !read_set(old, size, &s)) return LLVMFuzzerMutate(data, size, most);
    int end = set_end < s.n ? set_end : s.n, i = set_first < end ? set_first + (int)pick((size_t)(end - set_first)) : 0;
    if (pick(32) == 0) {
        change_set(&s, i);
    } else {
        size_t n = s.files[i].size;
        memcpy(fresh, s.files[i].data, n);
        s.files[i] = (struct bytes){fresh, change_file(fresh, n, ROOM)};
    }
    size_t written = write_set(&s, data, most);
    if (written) return written;
    memcpy(data, old, size);
    return LLVMFuzzerMutate(data, size, most);
}
