/* SPDX-License-Identifier: MIT
 *
 * GGUF v2 and v3: parses the header chunk by chunk.
 *
 * The parser works item by item (a key with its value, one element of a string array, one tensor entry). If an item is
 * incomplete, the parser starts it again when more bytes have arrived. So chunk sizes cannot change a result, and no
 * item is read more than a few times. Counts from the file are checked against limits and never determine the size of
 * an allocation.
 */
#include "base/reader.h"
#include "load/format.h"
#include "load/metadata.h"

#include <string.h>

/* Limits. Qwen3's metadata has about 5 MB and at most 300 keys. */
enum {
    COUNT_MAX = 65536,         /* keys, tensors */
    KEY_MAX = 65535,           /* bytes, by the specification */
    NAME_MAX_BYTES = 64,       /* bytes of a tensor's name, by the specification */
    STRING_MAX = 16 << 20,     /* bytes */
    ARRAY_MAX = 1 << 24,       /* elements */
    ALIGNMENT_DEFAULT = 32,
    ALIGNMENT_MAX = 65536,
    FIXED_HEADER = 24,
};

enum phase { PHASE_FIXED, PHASE_META, PHASE_ELEMENTS, PHASE_TENSORS, PHASE_DONE };

struct parser {
    enum phase phase;
    size_t pos;                    /* end of the last complete item */
    uint64_t n_metas, n_tensors;   /* as the header states */
    uint64_t elements_left;        /* of the current string array */
};

static const uint8_t widths[META_TYPES] = {
    [META_U8] = 1, [META_I8] = 1, [META_BOOL] = 1, [META_U16] = 2, [META_I16] = 2, [META_U32] = 4,
    [META_I32] = 4, [META_F32] = 4, [META_U64] = 8, [META_I64] = 8, [META_F64] = 8,
};

static struct span span_of(const struct cursor *c, struct bytes b)
{
    return (struct span){(size_t)(b.data - c->data), b.size};
}

/* Takes a string: a length, then bytes. Returns NEED_MORE, OK, or an error with `rule` if it is longer than max. */
static int take_string(struct cursor *c, uint64_t max, const char *rule, struct span *out, struct error *err)
{
    uint64_t length;
    struct bytes text;
    size_t at = c->pos;
    if (!take_u64(c, &length)) return NEED_MORE;
    if (length > max)
        return fail(err, ERR_FORMAT, rule, at,
                    "A string at byte %zu claims %llu bytes; at most %llu are allowed there.", at,
                    (unsigned long long)length, (unsigned long long)max);
    if (!take_bytes(c, length, &text)) return NEED_MORE;
    *out = span_of(c, text);
    return OK;
}

/* --- the fixed part -------------------------------------------------------------------------------------- */

static int check_version(uint32_t version, struct error *err)
{
    if (version == 2 || version == 3) return OK;
    if (version == 0x02000000 || version == 0x03000000)
        return fail(err, ERR_UNSUPPORTED, "endianness", 4,
                    "This GGUF file is big-endian; convert it to little-endian.");
    if (version > 3)
        return fail(err, ERR_UNSUPPORTED, "version", 4,
                    "This file is GGUF version %u; this engine reads versions 2 and 3.", version);
    return fail(err, ERR_FORMAT, "version", 4, "GGUF version %u is too old; this engine reads versions 2 and 3.",
                version);
}

static int check_count(uint64_t count, size_t at, const char *what, struct error *err)
{
    if (count <= COUNT_MAX) return OK;
    return fail(err, ERR_FORMAT, "count", at, "The file claims %llu %s; at most %d are allowed.",
                (unsigned long long)count, what, COUNT_MAX);
}

static int parse_fixed(struct parser *p, struct cursor *c, struct error *err)
{
    if (c->size < FIXED_HEADER) return NEED_MORE;
    int status = check_version(load_u32(c->data + 4), err);
    p->n_tensors = load_u64(c->data + 8);
    p->n_metas = load_u64(c->data + 16);
    if (!status) status = check_count(p->n_tensors, 8, "tensors", err);
    if (!status) status = check_count(p->n_metas, 16, "metadata keys", err);
    if (status) return status;
    c->pos = FIXED_HEADER;
    p->phase = PHASE_META;
    return OK;
}

/* --- metadata -------------------------------------------------------------------------------------------- */

static int fail_memory(struct error *err)
{
    return fail(err, ERR_MEM_LOAD, "header", 0, "Not enough memory for the file's header.");
}

static int take_key(struct cursor *c, struct span *key, struct error *err)
{
    size_t at = c->pos;
    int status = take_string(c, KEY_MAX, "key-length", key, err);
    if (!status && key->size == 0)
        return fail(err, ERR_FORMAT, "key-empty", at, "A metadata key at byte %zu is empty.", at);
    return status;
}

static int check_type(uint32_t type, size_t at, struct error *err)
{
    if (type < META_TYPES) return OK;
    return fail(err, ERR_FORMAT, "kv-type", at, "Metadata at byte %zu has the unknown type %u.", at, type);
}

static int check_array(enum meta_type element, uint64_t count, size_t at, struct error *err)
{
    if (element == META_ARRAY)
        return fail(err, ERR_FORMAT, "array-nested", at, "An array of arrays at byte %zu is not allowed.", at);
    uint64_t bytes = count * (element == META_STRING ? 8 : widths[element]);
    if (count <= ARRAY_MAX && bytes <= (uint64_t)ARRAY_MAX * 8) return OK;
    return fail(err, ERR_FORMAT, "array-count", at,
                "An array at byte %zu claims %llu elements; at most %d are allowed.", at, (unsigned long long)count,
                ARRAY_MAX);
}

/* Checks that Booleans are 0 or 1. */
static int check_bools(struct bytes values, size_t at, struct error *err)
{
    for (size_t i = 0; i < values.size; i++)
        if (values.data[i] > 1)
            return fail(err, ERR_FORMAT, "kv-bool", at + i, "A Boolean at byte %zu is %d, not 0 or 1.", at + i,
                        values.data[i]);
    return OK;
}

/* Takes the head of an array, and its elements if their width is fixed. Strings follow one by one (PHASE_ELEMENTS). */
static int take_array(struct parser *p, struct cursor *c, struct meta *m, struct error *err)
{
    uint32_t element;
    struct bytes data;
    size_t at = c->pos;
    if (!take_u32(c, &element) || !take_u64(c, &m->count)) return NEED_MORE;
    int status = check_type(element, at, err);
    m->element = (enum meta_type)element;
    if (!status) status = check_array(m->element, m->count, at, err);
    if (status) return status;
    if (m->element == META_STRING) {
        m->value = (struct span){c->pos, 0};
        p->elements_left = m->count;
        p->phase = PHASE_ELEMENTS;
        return OK;
    }
    if (!take_bytes(c, m->count * widths[m->element], &data)) return NEED_MORE;
    m->value = span_of(c, data);
    return m->element == META_BOOL ? check_bools(data, m->value.at, err) : OK;
}

static int take_scalar(struct cursor *c, struct meta *m, struct error *err)
{
    struct bytes value;
    if (!take_bytes(c, widths[m->type], &value)) return NEED_MORE;
    m->value = span_of(c, value);
    return m->type == META_BOOL ? check_bools(value, m->value.at, err) : OK;
}

static int parse_meta(struct checkpoint *ck, struct parser *p, struct cursor *c, struct error *err)
{
    if (ck->n_metas == p->n_metas) return p->phase = PHASE_TENSORS, OK;
    struct meta m = {0};
    uint32_t type;
    int status = take_key(c, &m.key, err);
    if (status) return status;
    size_t at = c->pos;
    if (!take_u32(c, &type)) return NEED_MORE;
    status = check_type(type, at, err);
    if (status) return status;
    m.type = (enum meta_type)type;
    if (m.type == META_STRING) status = take_string(c, STRING_MAX, "string-length", &m.value, err);
    else if (m.type == META_ARRAY) status = take_array(p, c, &m, err);
    else status = take_scalar(c, &m, err);
    return status ? status : ck_add_meta(ck, &m, err);
}

static int parse_element(struct checkpoint *ck, struct parser *p, struct cursor *c, struct error *err)
{
    struct span text;
    struct meta *m = &ck->metas[ck->n_metas - 1];
    if (p->elements_left == 0) {
        m->value.size = c->pos - m->value.at;
        p->phase = PHASE_META;
        return OK;
    }
    int status = take_string(c, STRING_MAX, "string-length", &text, err);
    if (!status) p->elements_left--;
    return status;
}

/* --- tensors --------------------------------------------------------------------------------------------- */

static int fail_tensor(struct error *err, const struct checkpoint *ck, const struct tensor *t, const char *rule,
                       const char *what)
{
    char name[QUOTED];
    return fail(err, ERR_FORMAT, rule, t->name.at, "The tensor \"%.64s\": %s.", quoted(ck_view(ck, t->name), name),
                what);
}

static int take_name(const struct checkpoint *ck, struct cursor *c, struct tensor *t, struct error *err)
{
    size_t at = c->pos;
    int status = take_string(c, NAME_MAX_BYTES, "tensor-name", &t->name, err);
    if (status) return status;
    if (t->name.size == 0 || memchr(ck_view(ck, t->name).data, 0, t->name.size))
        return fail(err, ERR_FORMAT, "tensor-name", at, "A tensor name at byte %zu is empty or holds a NUL.", at);
    return OK;
}

static int take_dims(const struct checkpoint *ck, struct cursor *c, struct tensor *t, struct error *err)
{
    uint32_t n_dims;
    if (!take_u32(c, &n_dims)) return NEED_MORE;
    if (n_dims < 1 || n_dims > 4)
        return fail_tensor(err, ck, t, "tensor-dims", "the number of dimensions is not 1 to 4");
    t->n_dims = (int)n_dims;
    t->rows = t->stack = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        uint64_t dim;
        if (!take_u64(c, &dim)) return NEED_MORE;
        if (dim == 0) return fail_tensor(err, ck, t, "tensor-zero", "a dimension is zero");
        if (i == 2) t->stack = dim;
        if (i == 3 && dim == 1) t->n_dims = 3; /* a fourth dimension of 1 has no effect */
        if (i == 0) t->cols = dim;
        else if (!mul64(t->rows, dim, &t->rows)) return fail_tensor(err, ck, t, "tensor-size", "its size overflows");
    }
    if (t->cols > INT32_MAX || t->rows > INT32_MAX)
        return fail_tensor(err, ck, t, "tensor-size", "its dimensions are too large");
    return OK;
}

static int check_tensor_type(const struct checkpoint *ck, struct tensor *t, uint32_t type, struct error *err)
{
    t->type = dtype_by_gguf(type);
    char name[QUOTED];
    if (!t->type)
        return fail(
            err, ERR_UNSUPPORTED, "tensor-type", t->name.at,
            "The tensor \"%.64s\" has the weight type number %u, which this version does not know; take a file of Q4_K_M or Q8_0.",
            quoted(ck_view(ck, t->name), name), (unsigned)type);
    if (t->cols % t->type->block)
        return fail_tensor(err, ck, t, "tensor-block", "its rows are not whole blocks of its weight type");
    if (!mul64(t->cols / t->type->block * t->type->bytes, t->rows, &t->bytes))
        return fail_tensor(err, ck, t, "tensor-size", "its size overflows");
    return OK;
}

static int parse_tensor(struct checkpoint *ck, struct parser *p, struct cursor *c, struct error *err)
{
    if (ck->n_tensors == p->n_tensors) return p->phase = PHASE_DONE, OK;
    struct tensor t = {0};
    uint32_t type;
    int status = take_name(ck, c, &t, err);
    if (!status) status = take_dims(ck, c, &t, err);
    if (status) return status;
    if (!take_u32(c, &type) || !take_u64(c, &t.offset)) return NEED_MORE;
    status = check_tensor_type(ck, &t, type, err);
    return status ? status : ck_add_tensor(ck, &t, err);
}

/* --- the end of the header -------------------------------------------------------------------------------- */

/* Searches all metadata, because it is not sorted yet when the header ends. */
static int find_alignment(const struct checkpoint *ck, uint64_t *out, struct error *err)
{
    *out = ALIGNMENT_DEFAULT;
    for (size_t i = 0; i < ck->n_metas; i++) {
        const struct meta *m = &ck->metas[i];
        if (!bytes_equal(ck_view(ck, m->key), "general.alignment")) continue;
        *out = m->type == META_U32 ? load_u32(ck_view(ck, m->value).data) : 0;
        if (*out && *out <= ALIGNMENT_MAX && (*out & (*out - 1)) == 0) return OK;
        return fail(err, ERR_FORMAT, "alignment", m->value.at, "general.alignment must be a u32 power of two up to %d.",
                    ALIGNMENT_MAX);
    }
    return OK;
}

/* Converts the tensors' offsets to positions in the file. */
static int place_tensors(struct checkpoint *ck, uint64_t data, uint64_t alignment, struct error *err)
{
    for (size_t i = 0; i < ck->n_tensors; i++) {
        struct tensor *t = &ck->tensors[i];
        uint64_t end;
        if (t->offset % alignment) return fail_tensor(err, ck, t, "tensor-align", "its offset is not aligned");
        if (!add64(t->offset, data, &t->offset) || !add64(t->offset, t->bytes, &end))
            return fail_tensor(err, ck, t, "tensor-range", "it lies outside the file");
        if (end > ck->file_size) ck->file_size = end;
    }
    return OK;
}

/* Q2_0 first had groups of 128 columns in 34 bytes, under the number that groups of 64 columns in 18 bytes have now.
 * Nothing but the room of its tensors, up to the next one or the end of the file, tells such a file. */
static int check_groups(const struct checkpoint *ck, struct error *err)
{
    enum { Q2_0 = 42, WIDE = 128, WIDE_BYTES = 34 };
    char name[QUOTED];
    for (size_t i = 0; i < ck->n_tensors; i++) {
        const struct tensor *t = &ck->tensors[i];
        uint64_t next = i + 1 < ck->n_tensors ? ck->tensors[i + 1].offset : ck->known_size, room = next - t->offset;
        if (t->type->gguf_id != Q2_0 || t->cols % WIDE || next < t->offset || room >= t->bytes) continue;
        if (room >= t->cols / WIDE * WIDE_BYTES * t->rows)
            return fail(
                err, ERR_UNSUPPORTED, "tensor-groups", t->name.at,
                "The tensor \"%.64s\" has Q2_0 in groups of 128, an older form; take the newer file, *-Q2_0_g64.gguf.",
                quoted(ck_view(ck, t->name), name));
    }
    return OK;
}

static int check_ends(const struct checkpoint *ck, struct error *err)
{
    for (size_t i = 0; i < ck->n_tensors && ck->known_size; i++)
        if (ck->tensors[i].offset + ck->tensors[i].bytes > ck->known_size)
            return fail_tensor(err, ck, &ck->tensors[i], "tensor-range", "it ends after the end of the file");
    return OK;
}

static int finish_header(struct checkpoint *ck, struct error *err)
{
    struct parser *p = ck->parser;
    uint64_t alignment, data;
    int status = find_alignment(ck, &alignment, err);
    if (!status && !pad64(p->pos, alignment, &data))
        status = fail(err, ERR_FORMAT, "alignment", 0, "The data section lies outside the file.");
    if (!status) status = place_tensors(ck, data, alignment, err);
    if (!status) ck_sort_tensors(ck), status = check_groups(ck, err);
    if (!status) status = check_ends(ck, err);
    if (!status) status = ck_complete(ck, err);
    if (!status && ck_tensors_in_all(ck) == 0) /* the first file of a split model may hold metadata only */
        status = fail(err, ERR_FORMAT, "no-tensors", 8,
                      "The file holds no tensors; it may be a vocabulary without a model.");
    if (ck->n_tensors == 0) ck->file_size = p->pos;
    ck->header_size = p->pos;
    ck->begin = p->pos;
    mem_free(ck->mem, ck->parser);
    ck->parser = NULL;
    return status;
}

static int parse_item(struct checkpoint *ck, struct parser *p, struct cursor *c, struct error *err)
{
    switch (p->phase) {
    case PHASE_FIXED: return parse_fixed(p, c, err);
    case PHASE_META: return parse_meta(ck, p, c, err);
    case PHASE_ELEMENTS: return parse_element(ck, p, c, err);
    default: return parse_tensor(ck, p, c, err);
    }
}

/* Parses all complete items. */
static int parse(struct checkpoint *ck, struct error *err)
{
    struct parser *p = ck->parser;
    struct cursor c = {ck->header, ck->header_size, p->pos};
    int status = OK;
    while (!status && p->phase != PHASE_DONE) {
        status = parse_item(ck, p, &c, err);
        if (!status) p->pos = c.pos;
    }
    return status;
}

static int gguf_header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    enum { SLICE = 65536 }; /* most bytes kept beyond the header's end */
    *used = 0;
    if (!ck->parser) ck->parser = mem_alloc(ck->mem, sizeof(struct parser));
    if (!ck->parser) return fail_memory(err);
    int status = parse(ck, err);
    while (status == NEED_MORE && *used < n) {
        size_t slice = n - *used < SLICE ? n - *used : SLICE;
        status = ck_keep(ck, bytes + *used, slice, err);
        *used += slice;
        if (!status) status = parse(ck, err);
    }
    if (status) return status;
    *used -= ck->header_size - ((struct parser *)ck->parser)->pos;
    return finish_header(ck, err);
}

static int gguf_ended(struct checkpoint *ck, struct error *err)
{
    return fail(err, ERR_FORMAT, "truncated", ck->header_size, "The file ends at byte %zu, inside its header.",
                ck->header_size);
}

const struct format format_gguf = {.name = "gguf", .header = gguf_header, .ended = gguf_ended};
