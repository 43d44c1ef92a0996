/* SPDX-License-Identifier: MIT
 *
 * Mutates GGUF files by their structure: reads a file into a list of keys and a list of tensors, changes one thing (a
 * type, a count, a length, a name, a dimension, an offset, the order, ...) and writes a file that is otherwise
 * consistent: counts, lengths, offsets and padding follow from the lists. Files that cannot be read, and one file in
 * eight, go to libFuzzer's own mutations.
 */
#include "load.h"

#include "weights/dtype.h"
#include "base/reader.h"

enum { KEYS = 64, TENSORS = 64, ROOM = 1 << 18 };
enum { U32 = 4, BOOL = 7, STRING = 8, ARRAY = 9, VALUE_TYPES = 13, TENSOR_TYPES = 44 };

struct pair {
    struct bytes key;
    uint32_t type, element;
    uint64_t count, lie; /* elements of an array; `lie` is added to the count or length that is written */
    struct bytes value;  /* a scalar, a text, or packed elements */
};

struct entry {
    struct bytes name;
    uint32_t n_dims, type;
    uint64_t dims[4];
    uint64_t lie;      /* added to the offset */
    struct bytes data; /* as much as the file has */
};

static struct {
    uint32_t version;
    uint64_t key_lie, tensor_lie; /* added to the counts */
    struct pair keys[KEYS];
    struct entry tensors[TENSORS];
    size_t n_keys, n_tensors;
} file;
static uint8_t input[ROOM], fresh[ROOM]; /* memory of the lists: the old file, and new contents */
static size_t n_fresh;

/* --- reading -------------------------------------------------------------------------------------------- */

static const uint8_t widths[VALUE_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static bool take_text(struct cursor *c, struct bytes *out)
{
    uint64_t length;
    return take_u64(c, &length) && take_bytes(c, length, out);
}

static bool take_array(struct cursor *c, struct pair *p)
{
    struct bytes text;
    if (!take_u32(c, &p->element) || p->element >= VALUE_TYPES || p->element == ARRAY || !take_u64(c, &p->count) ||
        p->count > ROOM)
        return false;
    if (p->element != STRING) return take_bytes(c, p->count * widths[p->element], &p->value);
    size_t begin = c->pos;
    for (uint64_t i = 0; i < p->count; i++)
        if (!take_text(c, &text)) return false;
    p->value = (struct bytes){c->data + begin, c->pos - begin};
    return true;
}

static bool take_pair(struct cursor *c, struct pair *p)
{
    *p = (struct pair){0};
    if (!take_text(c, &p->key) || !take_u32(c, &p->type) || p->type >= VALUE_TYPES) return false;
    if (p->type == STRING) return take_text(c, &p->value);
    return p->type == ARRAY ? take_array(c, p) : take_bytes(c, widths[p->type], &p->value);
}

/* Bytes by type and dimensions; 0 if no tensor here can be like that. */
static uint64_t tensor_bytes(const struct entry *t)
{
    const struct dtype *type = dtype_by_gguf(t->type);
    uint64_t rows = 1, bytes;
    if (!type || t->dims[0] % type->block) return 0;
    for (uint32_t i = 1; i < t->n_dims; i++)
        if (!mul64(rows, t->dims[i % 4], &rows)) return 0;
    return mul64(t->dims[0] / type->block, rows, &bytes) && mul64(bytes, type->bytes, &bytes) && bytes < ROOM ? bytes
                                                                                                              : 0;
}

static bool take_entry(struct cursor *c, struct entry *t)
{
    *t = (struct entry){0};
    if (!take_text(c, &t->name) || !take_u32(c, &t->n_dims) || t->n_dims > 4) return false;
    for (uint32_t i = 0; i < t->n_dims; i++)
        if (!take_u64(c, &t->dims[i])) return false;
    return take_u32(c, &t->type) && take_u64(c, &t->lie); /* `lie` holds the offset until place() */
}

static uint64_t alignment(void)
{
    for (size_t i = 0; i < file.n_keys; i++) {
        const struct pair *p = &file.keys[i];
        uint32_t value = p->type == U32 && p->value.size == 4 && bytes_equal(p->key, "general.alignment")
                             ? load_u32(p->value.data)
                             : 0;
        if (value && value <= 4096 && !(value & (value - 1))) return value;
    }
    return 32;
}

/* Sets the tensors' data; from now on offsets follow from the order. */
static void place(const struct cursor *c)
{
    uint64_t begin = c->pos;
    pad64(begin, alignment(), &begin);
    for (size_t i = 0; i < file.n_tensors; i++) {
        struct entry *t = &file.tensors[i];
        uint64_t bytes = tensor_bytes(t), at = t->lie < ROOM ? begin + t->lie : ROOM,
                 left = at < c->size ? c->size - at : 0;
        if (left) t->data = (struct bytes){c->data + at, (size_t)(bytes < left ? bytes : left)};
        t->lie = 0;
    }
}

static bool read_file(size_t size)
{
    struct cursor c = {input, size, 4};
    uint64_t n_tensors, n_keys;
    if (size < 4 || memcmp(input, "GGUF", 4) || !take_u32(&c, &file.version) || !take_u64(&c, &n_tensors) ||
        !take_u64(&c, &n_keys))
        return false;
    if (n_tensors > TENSORS || n_keys > KEYS) return false;
    for (file.n_keys = 0; file.n_keys < n_keys; file.n_keys++)
        if (!take_pair(&c, &file.keys[file.n_keys])) return false;
    for (file.n_tensors = 0; file.n_tensors < n_tensors; file.n_tensors++)
        if (!take_entry(&c, &file.tensors[file.n_tensors])) return false;
    file.key_lie = file.tensor_lie = 0;
    place(&c);
    return true;
}

/* --- writing -------------------------------------------------------------------------------------------- */

struct sink {
    uint8_t *data;
    size_t size, room; /* size > room: the output did not fit */
};

static void put(struct sink *s, const void *bytes, size_t n)
{
    if (s->size <= s->room && n <= s->room - s->size) {
        if (n && bytes) memcpy(s->data + s->size, bytes, n);
        else memset(s->data + s->size, 0, n);
        s->size += n;
    } else s->size = s->room + 1;
}

static void put_u32(struct sink *s, uint32_t value) { put(s, &value, sizeof value); }
static void put_u64(struct sink *s, uint64_t value) { put(s, &value, sizeof value); }

static void put_text(struct sink *s, struct bytes text, uint64_t lie)
{
    put_u64(s, text.size + lie);
    put(s, text.data, text.size);
}

static void put_pair(struct sink *s, const struct pair *p)
{
    put_text(s, p->key, 0);
    put_u32(s, p->type);
    if (p->type == STRING) {
        put_text(s, p->value, p->lie);
        return;
    }
    if (p->type == ARRAY) {
        put_u32(s, p->element);
        put_u64(s, p->count + p->lie);
    }
    put(s, p->value.data, p->value.size);
}

static void put_entry(struct sink *s, const struct entry *t, uint64_t *offset)
{
    put_text(s, t->name, 0);
    put_u32(s, t->n_dims);
    for (uint32_t i = 0; i < t->n_dims; i++) put_u64(s, t->dims[i % 4]);
    put_u32(s, t->type);
    put_u64(s, *offset + t->lie);
    *offset += tensor_bytes(t);
    pad64(*offset, alignment(), offset);
}

static void put_padding(struct sink *s)
{
    uint64_t end;
    if (pad64(s->size, alignment(), &end)) put(s, NULL, (size_t)end - s->size);
}

static void put_data(struct sink *s, const struct entry *t)
{
    uint64_t bytes = tensor_bytes(t), there = t->data.size < bytes ? t->data.size : bytes;
    put(s, t->data.data, (size_t)there);
    put(s, NULL, (size_t)(bytes - there));
    put_padding(s);
}

static size_t write_file(uint8_t *out, size_t room)
{
    struct sink s = {out, 0, room};
    uint64_t offset = 0;
    put(&s, "GGUF", 4);
    put_u32(&s, file.version);
    put_u64(&s, file.n_tensors + file.tensor_lie);
    put_u64(&s, file.n_keys + file.key_lie);
    for (size_t i = 0; i < file.n_keys; i++) put_pair(&s, &file.keys[i]);
    for (size_t i = 0; i < file.n_tensors; i++) put_entry(&s, &file.tensors[i], &offset);
    put_padding(&s);
    for (size_t i = 0; i < file.n_tensors; i++) put_data(&s, &file.tensors[i]);
    return s.size <= room ? s.size : 0;
}

/* --- changes -------------------------------------------------------------------------------------------- */

static uint64_t *source; /* state of the random numbers */

static size_t pick(size_t n) { return (size_t)below(source, n); }

/* Takes room for new contents. */
static uint8_t *fresh_bytes(size_t n)
{
    uint8_t *out = fresh + n_fresh;
    if (n > ROOM - n_fresh) return NULL;
    n_fresh += n;
    return out;
}

/* Changes bytes with libFuzzer's own mutations; the result may be up to `more` bytes longer. */
static struct bytes changed(struct bytes b, size_t more)
{
    uint8_t *copy = fresh_bytes(b.size + more);
    if (!copy || b.size + more == 0) return b;
    if (b.size) memcpy(copy, b.data, b.size);
    return (struct bytes){copy, LLVMFuzzerMutate(copy, b.size, b.size + more)};
}

static uint64_t number(uint64_t old)
{
    static const uint64_t values[] = {
        0,         1,          2,          3,          8,         31,         32,
        33,        64,         255,        256,        65535,     65536,      1 << 24,
        INT32_MAX, 1ull << 31, UINT32_MAX, 1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX - 31,
        UINT64_MAX};
    const uint64_t near[] = {old + 1, old - 1, 2 * old, old / 2};
    size_t i = pick(2 * sizeof values / sizeof *values);
    return i < sizeof values / sizeof *values ? values[i] : near[i % 4];
}

/* Changes the array at `items`: copies item `from` to `to`, removes item `from` (to < 0), or swaps both. */
static void move_item(void *items, size_t width, size_t *n, size_t most, size_t from, int what, size_t to)
{
    uint8_t *base = items, item[sizeof(struct pair) + sizeof(struct entry)];
    memcpy(item, base + from * width, width);
    if (what == 0) {
        memmove(base + from * width, base + (from + 1) * width, (--*n - from) * width);
    } else if (what == 1 && *n < most) {
        memmove(base + (to + 1) * width, base + to * width, ((*n)++ - to) * width);
        memcpy(base + to * width, item, width);
    } else {
        memcpy(base + from * width, base + to * width, width);
        memcpy(base + to * width, item, width);
    }
}

static void change_order(struct pair *p, struct entry *t)
{
    if (p && pick(2))
        move_item(file.keys, sizeof *p, &file.n_keys, KEYS, (size_t)(p - file.keys), (int)pick(3), pick(file.n_keys));
    else if (t)
        move_item(file.tensors, sizeof *t, &file.n_tensors, TENSORS, (size_t)(t - file.tensors), (int)pick(3),
                  pick(file.n_tensors));
}

static void change_counts(void)
{
    uint64_t *lie = pick(2) ? &file.key_lie : &file.tensor_lie;
    *lie = pick(2) ? number(0) : pick(3) - 1;
    if (pick(8) == 0) file.version = (uint32_t)number(file.version);
}

/* Changes, removes or repeats one string of an array of strings. */
static void change_element(struct pair *p)
{
    struct cursor c = {p->value.data, p->value.size, 0};
    struct bytes text = {0}, next;
    size_t at = 0, wanted = p->count ? pick((size_t)p->count) : 0, what = pick(4);
    for (size_t i = 0; i <= wanted && take_text(&c, &text); i++) at = c.pos - text.size - 8;
    next = what < 2 ? changed(text, 8) : text;
    struct sink s = {fresh_bytes(p->value.size + text.size + 32), 0, p->value.size + text.size + 32};
    if (!s.data || p->count == 0) return;
    put(&s, p->value.data, at);
    if (what != 2) put_text(&s, next, 0);
    if (what == 3) put_text(&s, next, 0);
    put(&s, p->value.data + c.pos, p->value.size - c.pos);
    p->count += what == 3 ? 1 : what == 2 ? UINT64_MAX : 0;
    p->value = (struct bytes){s.data, s.size};
}

static void set_scalar(struct pair *p, uint64_t value)
{
    uint8_t *bytes = fresh_bytes(8);
    if (!bytes) return;
    memcpy(bytes, &value, 8);
    p->value = (struct bytes){bytes, widths[p->type]};
}

static uint64_t scalar(const struct pair *p)
{
    uint64_t value = 0;
    memcpy(&value, p->value.data, p->value.size < 8 ? p->value.size : 8);
    return value;
}

static void change_value(struct pair *p)
{
    if (p->type == ARRAY && p->element == STRING) {
        change_element(p);
    } else if (p->type == ARRAY) {
        p->value = changed(p->value, widths[p->element]);
        p->count = p->value.size / widths[p->element];
        p->value.size = (size_t)p->count * widths[p->element];
    } else if (p->type == STRING) {
        p->value = changed(p->value, 16);
    } else if (p->type < VALUE_TYPES && pick(2)) {
        set_scalar(p, number(scalar(p)));
    } else p->value = changed(p->value, 0);
}

/* Changes the type of the same number, or of the same elements. */
static void change_type(struct pair *p)
{
    uint32_t type = (uint32_t)pick(VALUE_TYPES);
    if (p->type >= VALUE_TYPES || p->type == STRING || type == STRING || type == ARRAY ||
        (p->type == ARRAY && p->element == STRING))
        return;
    if (p->type == ARRAY) {
        p->element = type;
        p->count = p->value.size / widths[type];
        p->value.size = (size_t)p->count * widths[type];
        return;
    }
    uint64_t value = scalar(p);
    p->type = type;
    set_scalar(p, type == BOOL ? value & 1 : value);
}

static void change_pair(struct pair *p)
{
    switch (pick(10)) {
    case 0: p->key = pick(2) ? changed(p->key, 4) : file.keys[pick(file.n_keys)].key; break;
    case 1: p->lie = pick(2) ? number(0) : pick(5) - 2; break;
    case 2: p->type = (uint32_t)(pick(4) ? pick(VALUE_TYPES) : number(p->type)); break; /* keeps the bytes */
    case 3: change_type(p); break;
    case 4: p->value = file.keys[pick(file.n_keys)].value; break;
    default: change_value(p);
    }
}

static void change_tensor(struct entry *t)
{
    size_t d = pick(4);
    switch (pick(8)) {
    case 0: t->name = pick(2) ? changed(t->name, 4) : file.tensors[pick(file.n_tensors)].name; break;
    case 1: t->type = (uint32_t)(pick(4) ? pick(TENSOR_TYPES) : number(t->type)); break;
    case 2: t->n_dims = (uint32_t)(pick(2) ? pick(6) : number(t->n_dims)) % 64; break;
    case 3: t->lie = pick(2) ? number(0) : (pick(9) - 4) * alignment(); break;
    case 4: t->dims[d] = t->dims[pick(4)]; break;
    case 5: t->dims[d % 2] = number(t->dims[d % 2]); break;
    case 6: t->dims[d] = number(t->dims[d]); break;
    default: t->data = changed(t->data, 0);
    }
}

static void change(void)
{
    struct pair *p = file.n_keys ? &file.keys[pick(file.n_keys)] : NULL;
    struct entry *t = file.n_tensors ? &file.tensors[pick(file.n_tensors)] : NULL;
    size_t what = pick(16);
    if (what == 0) change_counts();
    else if (what < 4) change_order(p, t);
    else if (what < 10 && p) change_pair(p);
    else if (t) change_tensor(t);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    uint64_t random = seed | 1ull << 32;
    source = &random;
    n_fresh = 0;
    if (size > ROOM || pick(8) == 0) return LLVMFuzzerMutate(data, size, most);
    memcpy(input, data, size);
    if (!read_file(size)) return LLVMFuzzerMutate(data, size, most);
    for (size_t n = 1 + pick(3); n; n--) change();
    size_t written = write_file(data, most);
    if (written) return written;
    memcpy(data, input, size);
    return LLVMFuzzerMutate(data, size, most);
}
