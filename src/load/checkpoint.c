/* SPDX-License-Identifier: MIT
 *
 * How formats fill a checkpoint, the sort orders for look-ups, tensor look-up with shape checks, and the flow of tensor
 * bytes.
 */
#include "load/checkpoint.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP = 8, HEADER_MAX = 64 << 20 };

void ck_init(struct checkpoint *ck, struct mem *m, uint64_t known_size)
{
    *ck = (struct checkpoint){.mem = m, .known_size = known_size};
}

void ck_close(struct checkpoint *ck)
{
    for (size_t i = 0; i < ck->n_tensors; i++) mem_free(ck->mem, ck->tensors[i].context);
    void *parts[] = {ck->header, ck->metas, ck->tensors, ck->by_name, ck->parser, ck->stage};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(ck->mem, parts[i]);
    *ck = (struct checkpoint){.mem = ck->mem};
}

struct bytes ck_view(const struct checkpoint *ck, struct span s) { return (struct bytes){ck->header + s.at, s.size}; }

/* --- collecting ---------------------------------------------------------------------------------------- */

int ck_keep(struct checkpoint *ck, const uint8_t *bytes, size_t n, struct error *err)
{
    if (n > HEADER_MAX - ck->header_size)
        return fail(err, ERR_FORMAT, "header-size", ck->header_size,
                    "The file's header is longer than 64 MiB; this is not a model file.");
    if (ck->header_size + n > ck->header_room) {
        size_t room = ck->header_room ? ck->header_room * 2 : 65536;
        while (room < ck->header_size + n) room *= 2;
        uint8_t *grown = mem_resize(ck->mem, ck->header, room);
        if (!grown)
            return fail(err, ERR_MEM_LOAD, "header", 0, "Not enough memory for the file's header (%zu bytes).", room);
        ck->header = grown;
        ck->header_room = room;
    }
    if (n) memcpy(ck->header + ck->header_size, bytes, n);
    ck->header_size += n;
    return OK;
}

/* Returns a list with room for one more item of `size` bytes; doubles the list if needed. NULL when memory is short. */
static void *make_room(struct checkpoint *ck, void *list, size_t count, size_t *room, size_t size)
{
    if (count < *room) return list;
    size_t wanted = *room ? *room * 2 : 64;
    void *grown = mem_resize(ck->mem, list, wanted * size);
    if (grown) *room = wanted;
    return grown;
}

static int fail_memory(struct error *err)
{
    return fail(err, ERR_MEM_LOAD, "header", 0, "Not enough memory for the file's header.");
}

int ck_add_meta(struct checkpoint *ck, const struct meta *m, struct error *err)
{
    struct meta *list = make_room(ck, ck->metas, ck->n_metas, &ck->metas_room, sizeof *list);
    if (!list) return fail_memory(err);
    ck->metas = list;
    list[ck->n_metas++] = *m;
    return OK;
}

int ck_add_tensor(struct checkpoint *ck, const struct tensor *t, struct error *err)
{
    struct tensor *list = make_room(ck, ck->tensors, ck->n_tensors, &ck->tensors_room, sizeof *list);
    if (!list) return fail_memory(err);
    ck->tensors = list;
    list[ck->n_tensors++] = *t;
    return OK;
}

/* --- metadata in GGUF's terms ---------------------------------------------------------------------------- */

static int keep_span(struct checkpoint *ck, struct bytes b, struct span *out, struct error *err)
{
    *out = (struct span){ck->header_size, b.size};
    return ck_keep(ck, b.data, b.size, err);
}

static int put(struct checkpoint *ck, struct bytes key, struct meta m, struct bytes value, struct error *err)
{
    int status = keep_span(ck, key, &m.key, err);
    if (!status) status = keep_span(ck, value, &m.value, err);
    return status ? status : ck_add_meta(ck, &m, err);
}

static struct bytes text_of(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

int ck_put_text(struct checkpoint *ck, const char *key, struct bytes text, struct error *err)
{
    return put(ck, text_of(key), (struct meta){.type = META_STRING}, text, err);
}

int ck_put_int(struct checkpoint *ck, const char *key, int64_t value, struct error *err)
{
    return put(ck, text_of(key), (struct meta){.type = META_I64}, (struct bytes){(const uint8_t *)&value, sizeof value},
               err);
}

int ck_put_float(struct checkpoint *ck, const char *key, double value, struct error *err)
{
    return put(ck, text_of(key), (struct meta){.type = META_F64}, (struct bytes){(const uint8_t *)&value, sizeof value},
               err);
}

int ck_put_bool(struct checkpoint *ck, const char *key, bool value, struct error *err)
{
    uint8_t byte = value;
    return put(ck, text_of(key), (struct meta){.type = META_BOOL}, (struct bytes){&byte, 1}, err);
}

int ck_put_array(struct checkpoint *ck, const char *key, enum meta_type element, struct bytes data, uint64_t count,
                 struct error *err)
{
    return put(ck, text_of(key), (struct meta){.type = META_ARRAY, .element = element, .count = count}, data, err);
}

int ck_merge(struct checkpoint *ck, const struct checkpoint *from, struct error *err)
{
    int status = OK;
    for (size_t i = 0; !status && i < from->n_metas; i++) {
        const struct meta *m = &from->metas[i];
        status = put(ck, ck_view(from, m->key), *m, ck_view(from, m->value), err);
    }
    return status;
}

static bool begins_with(struct bytes text, const char *prefix)
{
    size_t n = strlen(prefix);
    return text.size >= n && memcmp(text.data, prefix, n) == 0;
}

struct meta *ck_seek(const struct checkpoint *ck, struct bytes key)
{
    for (size_t i = 0; i < ck->n_metas; i++)
        if (bytes_compare(ck_view(ck, ck->metas[i].key), key) == 0) return &ck->metas[i];
    return NULL;
}

bool ck_any(const struct checkpoint *ck, const char *prefix)
{
    for (size_t i = 0; i < ck->n_metas; i++)
        if (begins_with(ck_view(ck, ck->metas[i].key), prefix)) return true;
    return false;
}

void ck_drop(struct checkpoint *ck, const char *prefix, const char *except)
{
    size_t kept = 0;
    for (size_t i = 0; i < ck->n_metas; i++) {
        struct bytes key = ck_view(ck, ck->metas[i].key);
        if (!begins_with(key, prefix) || bytes_equal(key, except)) ck->metas[kept++] = ck->metas[i];
    }
    ck->n_metas = kept;
}

int ck_override(struct checkpoint *ck, const struct checkpoint *from, const char *prefix, struct error *err)
{
    size_t kept = 0;
    int status = OK;
    for (size_t i = 0; i < ck->n_metas; i++) {
        struct bytes key = ck_view(ck, ck->metas[i].key);
        if (!begins_with(key, prefix) || !ck_seek(from, key)) ck->metas[kept++] = ck->metas[i];
    }
    ck->n_metas = kept;
    for (size_t i = 0; !status && i < from->n_metas; i++) {
        const struct meta *m = &from->metas[i];
        if (begins_with(ck_view(from, m->key), prefix))
            status = put(ck, ck_view(from, m->key), *m, ck_view(from, m->value), err);
    }
    return status;
}

int ck_gather(struct checkpoint *ck, const struct checkpoint *from, uint64_t at, struct error *err)
{
    int status = OK;
    for (size_t i = 0; !status && i < from->n_tensors; i++) {
        struct tensor t = from->tensors[i];
        struct bytes name = ck_view(from, t.name);
        t.name.at = ck->header_size;
        t.offset += at;
        status = ck_keep(ck, name.data, name.size, err);
        if (!status) status = ck_add_tensor(ck, &t, err);
    }
    ck->trunk = ck->trunk || from->trunk;
    return status ? status : ck_complete(ck, err);
}

uint64_t name_hash(struct bytes name)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < name.size; i++) hash = (hash ^ name.data[i]) * 1099511628211u;
    return hash;
}

/* --- order ---------------------------------------------------------------------------------------------- */

/* qsort has no context argument in C11, so items carry their key while they are sorted. */
struct keyed {
    struct bytes key;
    size_t index;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int order = bytes_compare(x->key, y->key);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Sorts `keys`. Returns the index of the second of two equal keys; SIZE_MAX if all differ. */
static size_t find_duplicate(struct keyed *keys, size_t n)
{
    qsort(keys, n, sizeof *keys, compare_keyed);
    for (size_t i = 1; i < n; i++)
        if (bytes_compare(keys[i - 1].key, keys[i].key) == 0) return keys[i].index;
    return SIZE_MAX;
}

static int sort_metas(struct checkpoint *ck, struct error *err)
{
    struct keyed *keys = mem_array(ck->mem, ck->n_metas + 1, sizeof *keys);
    struct meta *sorted = mem_array(ck->mem, ck->n_metas + 1, sizeof *sorted);
    int status =
        keys && sorted ? OK : fail(err, ERR_MEM_LOAD, "header", 0, "Not enough memory for the file's metadata.");
    for (size_t i = 0; !status && i < ck->n_metas; i++) keys[i] = (struct keyed){ck_view(ck, ck->metas[i].key), i};
    size_t twice = status ? SIZE_MAX : find_duplicate(keys, ck->n_metas);
    if (twice != SIZE_MAX) {
        char name[QUOTED];
        struct span key = ck->metas[twice].key;
        status = fail(err, ERR_FORMAT, "key-duplicate", key.at, "The metadata key \"%s\" appears twice.",
                      quoted(ck_view(ck, key), name));
    }
    for (size_t i = 0; !status && i < ck->n_metas; i++) sorted[i] = ck->metas[keys[i].index];
    mem_free(ck->mem, keys);
    if (status) {
        mem_free(ck->mem, sorted);
        return status;
    }
    mem_free(ck->mem, ck->metas);
    ck->metas = sorted;
    ck->metas_room = ck->n_metas + 1;
    return OK;
}

/* Fills by_name. */
static int sort_names(struct checkpoint *ck, struct error *err)
{
    struct keyed *keys = mem_array(ck->mem, ck->n_tensors + 1, sizeof *keys);
    mem_free(ck->mem, ck->by_name); /* an older list, if tensors were added since */
    ck->by_name = mem_array(ck->mem, ck->n_tensors + 1, sizeof *ck->by_name);
    if (!keys || !ck->by_name) {
        mem_free(ck->mem, keys);
        return fail(err, ERR_MEM_LOAD, "header", 0, "Not enough memory for the list of tensors.");
    }
    for (size_t i = 0; i < ck->n_tensors; i++) keys[i] = (struct keyed){ck_view(ck, ck->tensors[i].name), i};
    size_t twice = find_duplicate(keys, ck->n_tensors);
    for (size_t i = 0; i < ck->n_tensors; i++) ck->by_name[i] = keys[i].index;
    mem_free(ck->mem, keys);
    if (twice == SIZE_MAX) return OK;
    char name[QUOTED];
    struct span span = ck->tensors[twice].name;
    return fail(err, ERR_FORMAT, "tensor-duplicate", span.at, "The tensor \"%s\" appears twice.",
                quoted(ck_view(ck, span), name));
}

static int compare_offsets(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;
    int order = (x->offset > y->offset) - (x->offset < y->offset);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

void ck_sort_tensors(struct checkpoint *ck)
{
    if (ck->n_tensors) qsort(ck->tensors, ck->n_tensors, sizeof *ck->tensors, compare_offsets);
}

int ck_complete(struct checkpoint *ck, struct error *err)
{
    ck_sort_tensors(ck);
    int status = sort_metas(ck, err);
    if (!status) status = sort_names(ck, err);
    if (status) return status;
    for (size_t i = 1; i < ck->n_tensors; i++) {
        const struct tensor *a = &ck->tensors[i - 1], *b = &ck->tensors[i];
        char one[QUOTED], two[QUOTED];
        if (a->offset + a->bytes > b->offset)
            return fail(err, ERR_FORMAT, "tensor-overlap", b->offset, "The tensors \"%.64s\" and \"%.64s\" overlap.",
                        quoted(ck_view(ck, a->name), one), quoted(ck_view(ck, b->name), two));
    }
    return OK;
}

/* --- tensors ------------------------------------------------------------------------------------------- */

size_t ck_first(const struct checkpoint *ck, const char *prefix)
{
    struct bytes wanted = {(const uint8_t *)prefix, strlen(prefix)};
    size_t low = 0, high = ck->n_tensors;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (bytes_compare(ck_view(ck, ck->tensors[ck->by_name[mid]].name), wanted) < 0) low = mid + 1;
        else high = mid;
    }
    return low;
}

bool ck_rest(const struct checkpoint *ck, size_t place, const char *prefix, struct bytes *rest)
{
    size_t n = strlen(prefix);
    if (place >= ck->n_tensors) return false;
    *rest = ck_view(ck, ck->tensors[ck->by_name[place]].name);
    if (rest->size < n || memcmp(rest->data, prefix, n) != 0) return false;
    *rest = (struct bytes){rest->data + n, rest->size - n};
    return true;
}

struct tensor *ck_find(const struct checkpoint *ck, const char *name)
{
    struct bytes rest;
    size_t place = ck_first(ck, name);
    return ck_rest(ck, place, name, &rest) && rest.size == 0 ? &ck->tensors[ck->by_name[place]] : NULL;
}

/* Words of codes are [cols * bits / 32, rows], [cols, rows * bits / 32] or [rows, cols * bits / 32]. */
static uint64_t bits_of(const struct tensor *t, uint64_t cols, uint64_t rows)
{
    bool gptq = t->packing == PACKING_GPTQ || t->packing == PACKING_GPTQ_V2, awq = t->packing == PACKING_AWQ;
    uint64_t words = gptq ? t->rows : t->cols, codes = awq ? rows : cols, fits = gptq ? t->cols == rows : true;
    if (awq && (t->rows != cols || rows % PANEL_ROWS)) return 0;
    return fits && codes && 32 * words % codes == 0 ? 32 * words / codes : 0;
}

int ck_unfold(struct tensor *t, const char *name, uint64_t cols, uint64_t rows, uint64_t group, struct error *err)
{
    uint64_t bits = bits_of(t, cols, rows);
    if (cols % BLOCK || group % BLOCK || group == 0 || cols % group)
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                    "The tensor %s has %llu columns, and scales for %llu columns each; whole groups of a multiple of 32 columns are "
                    "supported.",
                    name, (unsigned long long)cols, (unsigned long long)group);
    if (!bits)
        return fail(err, ERR_INCONSISTENT, "shape", t->name.at,
                    "The tensor %s has %llu x %llu words, which are no whole number of bits for each of %llu x %llu codes.",
                    name, (unsigned long long)t->cols, (unsigned long long)t->rows, (unsigned long long)cols,
                    (unsigned long long)rows);
    const bool biased = t->packing == PACKING_MLX, awq = t->packing == PACKING_AWQ;
    const struct dtype *type = bits <= 8 ? dtype_of_codes((int)bits, group % 64 ? 32 : 64, biased) : NULL;
    const bool turned = t->packing != PACKING_MLX && t->packing != PACKING_CT; /* zero points are in whole words */
    if (!type || (awq && bits != 4) || (turned && 32 % bits))
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                    "The tensor %s has codes of %llu bits; %s.", name, (unsigned long long)bits,
                    awq      ? "in this form, 4 bits are supported"
                    : turned ? "in this form, 2, 4 and 8 bits are supported"
                             : "2, 3, 4, 5, 6 and 8 bits are supported");
    t->turned = turned;
    t->type = type;
    if (t->turned) t->rows = rows;
    t->cols = cols;
    return OK;
}

int ck_bind(const struct checkpoint *ck, const char *name, uint64_t cols, uint64_t rows, uint64_t stack,
            struct tensor **out, struct error *err)
{
    struct tensor *t = ck_find(ck, name);
    if (!t) return fail(err, ERR_FORMAT, "missing", 0, "The tensor %s is missing.", name);
    uint64_t high = rows ? rows : 1;
    if (t->cols != cols || t->rows != high * stack || t->stack != stack || t->n_dims > 3)
        return fail(err, ERR_INCONSISTENT, "shape", t->name.at,
                    "The tensor %s is %llu x %llu x %llu (%d dimensions); the metadata asks for %llu x %llu x %llu.",
                    name, (unsigned long long)t->cols, (unsigned long long)(t->rows / t->stack),
                    (unsigned long long)t->stack, t->n_dims, (unsigned long long)cols, (unsigned long long)high,
                    (unsigned long long)stack);
    if (t->type->layout == LAYOUT_FULL)
        return fail(err, ERR_UNSUPPORTED, "build", t->name.at,
                    "The tensor %s has the weight type %s, which this build of the engine does not read.", name,
                    t->type->name);
    if (t->type->layout == LAYOUT_NONE || (!rows && !dtype_is_plain(t->type)))
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                    "The tensor %s has the weight type %s, which this version does not run.", name, t->type->name);
    const struct layout_info *info = &layouts[t->type->layout];
    if (t->cols % (uint64_t)info->columns)
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                    "The tensor %s of the type %s has %llu columns; whole blocks of %d are supported.", name,
                    t->type->name, (unsigned long long)t->cols, info->columns);
    *out = t;
    return OK;
}

/* --- data ---------------------------------------------------------------------------------------------- */

static size_t row_bytes(const struct tensor *t) { return (size_t)(t->bytes / t->rows); }

/* Index of the tensor's twin, which comes after it, or i itself. Empty tensors may lie between. */
static size_t last_beside(const struct checkpoint *ck, size_t i)
{
    size_t last = i;
    if (ck->tensors[i].twin == 2)
        while (ck->tensors[++last].twin != 1) {}
    return last;
}

static bool is_wanted(const struct checkpoint *ck, size_t i)
{
    return ck->tensors[i].put || ck->tensors[last_beside(ck, i)].put;
}

/* Bytes of one matrix stored by columns, including its twin's matrix beside it. */
static uint64_t block_bytes(const struct tensor *t) { return t->bytes / t->stack * (t->twin == 2 ? 2 : 1); }

/* Most bytes needed at once: a group of rows; or a matrix stored by columns, and a group of rows made from it. */
static uint64_t largest_group(const struct checkpoint *ck)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < ck->n_tensors; i++) {
        const struct tensor *t = &ck->tensors[i];
        if (t->bytes == 0 || !is_wanted(ck, i)) continue;
        uint64_t row = row_bytes(t),
                 group = t->turned ? block_bytes(t) + GROUP * row : row * (t->rows < GROUP ? t->rows : GROUP);
        if (group > largest) largest = group;
    }
    return largest;
}

uint64_t ck_data_cost(const struct checkpoint *ck) { return mem_cost(largest_group(ck)); }

uint64_t ck_held(const struct checkpoint *ck)
{
    return ck->header_room + ck->n_tensors * (sizeof *ck->tensors + 2 * MEM_ALIGN);
}

int ck_data_begin(struct checkpoint *ck, struct error *err)
{
    uint64_t room = largest_group(ck);
    ck->stage = mem_alloc_raw(ck->mem, room);
    if (!ck->stage)
        return fail(err, ERR_MEM_LOAD, "stage", 0, "Not enough memory to load the file (%llu bytes).",
                    (unsigned long long)room);
    ck->stage_room = (size_t)room;
    ck->pos = ck->begin;
    return OK;
}

/* Copies bytes to the stage until it holds `full` bytes. Returns the number copied, at most n. */
static size_t stage_up(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t full)
{
    size_t take = full - ck->staged < n ? full - ck->staged : n;
    memcpy(ck->stage + ck->staged, bytes, take);
    ck->staged += take;
    return take;
}

/* Consecutive rows of the file: of a tensor, or of one matrix of a pair that alternates. */
struct run {
    const struct tensor *t;
    uint64_t row, left;
};

static struct run next_run(const struct checkpoint *ck, const struct tensor *t, const struct tensor *last)
{
    if (last == t) return (struct run){t, ck->next_row, t->rows - ck->next_row};
    uint64_t each = t->rows / t->stack, matrix = ck->next_row / (2 * each), row = ck->next_row % (2 * each);
    return (struct run){row < each ? t : last, matrix * each + row % each, each - row % each};
}

static void put_run(struct checkpoint *ck, const struct run *run, uint64_t rows, const uint8_t *bytes)
{
    if (run->t->put) run->t->put(run->t->context, (int)run->row, (int)rows, bytes);
    ck->next_row += rows;
}

/* Passes whole row groups on at once and keeps the rest in the stage. Returns the number of bytes used. */
static size_t put_rows(struct checkpoint *ck, struct run run, const uint8_t *bytes, size_t n)
{
    size_t row = row_bytes(run.t), left = (size_t)run.left;
    size_t group = (left < GROUP ? left : GROUP) * row;
    if (ck->staged == 0 && n >= group) {
        size_t rows = n / row < left ? n / row / GROUP * GROUP : left;
        put_run(ck, &run, rows, bytes);
        return rows * row;
    }
    size_t take = stage_up(ck, bytes, n, group);
    if (ck->staged == group) {
        put_run(ck, &run, group / row, ck->stage);
        ck->staged = 0;
    }
    return take;
}

/* Bytes that are transposed as one: a number, or a word of codes. */
static size_t element(const struct tensor *t) { return t->packing ? 4 : t->type->bytes; }

/* The columns of a matrix stored by columns, in the file: of elements, or of words with 8 rows. */
static size_t columns_of(const struct tensor *t)
{
    return t->packing == PACKING_AWQ ? (size_t)t->cols : row_bytes(t) / element(t);
}

/* Transposes `rows` columns of in [cols, stride / size] to out [rows, cols]. With more rows than a group, the cache
 * lines of `out` would evict each other. */
static inline void turn(uint8_t *out, const uint8_t *in, size_t stride, size_t rows, size_t cols, size_t size)
{
    for (size_t c = 0; c < cols; c++)
        for (size_t r = 0; r < rows; r++) memcpy(out + (r * cols + c) * size, in + c * stride + r * size, size);
}

/* Transposes the words of AWQ, each 8 rows of one column, to rows of nibbles: two columns at a time. From the lowest
 * nibble on, a word has rows 0, 2, 4, 6, 1, 3, 5, 7. */
static void turn_awq(uint8_t *out, const uint8_t *in, size_t stride, size_t cols)
{
    static const size_t rows[2][4] = {{0, 4, 1, 5}, {2, 6, 3, 7}};
    for (size_t c = 0; c < cols; c += 2) {
        uint32_t first = load_u32(in + c * stride), second = load_u32(in + (c + 1) * stride);
        uint32_t pairs[2] = {(first & 0x0F0F0F0F) | (second & 0x0F0F0F0F) << 4,
                             (first >> 4 & 0x0F0F0F0F) | (second & 0xF0F0F0F0)};
        for (int i = 0; i < 8; i++) out[rows[i / 4][i % 4] * (cols / 2) + c / 2] = (uint8_t)(pairs[i / 4] >> i % 4 * 8);
    }
}

/* Passes on the rows of matrix `i` of the stack t, whose first column begins at `in`. */
static void put_columns(struct checkpoint *ck, const struct tensor *t, int i, const uint8_t *in, size_t stride)
{
    size_t rows = (size_t)(t->rows / t->stack), cols = columns_of(t), size = element(t);
    uint8_t *group = ck->stage + ck->stage_room - GROUP * row_bytes(t);
    for (size_t r = 0; r < rows; r += GROUP) {
        size_t n = rows - r < GROUP ? rows - r : GROUP;
        if (t->packing == PACKING_AWQ) turn_awq(group, in + r / GROUP * size, stride, cols);
        else if (size == 2) turn(group, in + r * size, stride, n, cols, 2);
        else turn(group, in + r * size, stride, n, cols, 4);
        t->put(t->context, i * (int)rows + (int)r, (int)n, group);
    }
}

/* Handles bytes of matrices stored by columns: of t and of its twin `last` beside it. Returns the number of bytes
 * used. */
static size_t put_turned(struct checkpoint *ck, const struct tensor *t, const struct tensor *last, const uint8_t *bytes,
                         size_t n)
{
    size_t block = (size_t)block_bytes(t), stride = block / columns_of(t), taken = block;
    if (ck->staged || n < block) {
        taken = stage_up(ck, bytes, n, block);
        if (ck->staged < block) return taken;
        bytes = ck->stage;
        ck->staged = 0;
    }
    if (t->put) put_columns(ck, t, (int)ck->next_row, bytes, stride);
    if (last != t && last->put) put_columns(ck, last, (int)ck->next_row, bytes + stride / 2, stride);
    ck->next_row++;
    return taken;
}

/* Uses bytes of this chunk: skips to the next bound tensor, or passes on its rows. `last` is the index of its twin.
 * Returns the number of bytes used. */
static size_t take_data(struct checkpoint *ck, size_t last, const uint8_t *bytes, size_t n)
{
    const struct tensor *t = &ck->tensors[ck->current], *end_of = &ck->tensors[last];
    uint64_t end = end_of->offset + end_of->bytes;
    if (ck->pos < t->offset || !is_wanted(ck, ck->current)) {
        uint64_t skip = (ck->pos < t->offset ? t->offset : end) - ck->pos;
        return skip < n ? (size_t)skip : n;
    }
    if (end - ck->pos < n) n = (size_t)(end - ck->pos);
    return t->turned ? put_turned(ck, t, end_of, bytes, n) : put_rows(ck, next_run(ck, t, end_of), bytes, n);
}

void ck_data(struct checkpoint *ck, const uint8_t *bytes, size_t n)
{
    while (n && ck->current < ck->n_tensors) {
        size_t last = last_beside(ck, ck->current);
        size_t taken = take_data(ck, last, bytes, n);
        ck->pos += taken;
        bytes += taken;
        n -= taken;
        if (ck->pos == ck->tensors[last].offset + ck->tensors[last].bytes) ck->current = last + 1, ck->next_row = 0;
    }
    ck->pos += n;
}
