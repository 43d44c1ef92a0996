/* SPDX-License-Identifier: MIT
 *
 * A file's two phases, typed metadata access, tensor lookup with shape checks, and the flow of tensor bytes.
 */
#include "format.h"

#include "reader.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP = 8, TENSORS_MAX = 65536 };

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

int ck_header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    *used = n;
    if (ck->format) return ck->format->header(ck, bytes, n, used, err);
    /* The first bytes are collected before the format is named, so that a guess never depends on chunks. */
    size_t first = SNIFF - ck->header_size < n ? SNIFF - ck->header_size : n;
    int status = ck_keep(ck, bytes, first, err);
    if (status || ck->header_size < SNIFF) return status ? status : NEED_MORE;
    status = format_sniff(ck->header, ck->header_size, &ck->format, err);
    if (status) return status;
    status = ck->format->header(ck, bytes + first, n - first, used, err);
    *used += first;
    return status;
}

int ck_header_ended(struct checkpoint *ck, struct error *err)
{
    if (!ck->format && ck->header_size >= 4) {
        int status = format_sniff(ck->header, ck->header_size, &ck->format, err);
        if (status) return status;
        if (!ck->format->read && ck->header_size < SNIFF) ck->format = NULL;
    }
    if (!ck->format)
        return fail(err, ERR_FORMAT, "too-short", ck->header_size, "The file has only %zu bytes; that is too short for a model.", ck->header_size);
    return ck->format->read ? OK : ck->format->ended(ck, err);
}

bool ck_is_side(const struct checkpoint *ck) { return ck->format && ck->format->read; }

int ck_read_side(struct checkpoint *file, struct checkpoint *model, struct error *err) { return file->format->read(file, model, err); }

/* --- the finished header ------------------------------------------------------------------------------ */

struct bytes ck_view(const struct checkpoint *ck, struct span s) { return (struct bytes){ck->header + s.at, s.size}; }

/* --- metadata ------------------------------------------------------------------------------------------ */

const struct meta *meta_find(const struct checkpoint *ck, const char *key)
{
    struct bytes wanted = {(const uint8_t *)key, strlen(key)};
    size_t low = 0, high = ck->n_metas;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = bytes_compare(ck_view(ck, ck->metas[mid].key), wanted);
        if (order == 0) return &ck->metas[mid];
        if (order < 0) low = mid + 1;
        else high = mid;
    }
    return NULL;
}

static int fail_missing(struct error *err, const char *key)
{
    return fail(err, ERR_FORMAT, "missing", 0, "The metadata key %s is missing.", key);
}

static int fail_type(struct error *err, const struct meta *m, const char *key)
{
    return fail(err, ERR_FORMAT, "kv-type", m->key.at, "The metadata key %s has a type that does not fit (GGUF type %d).", key, (int)m->type);
}

/* false when the value is no integer; an unsigned one above INT64_MAX becomes that. */
static bool integer_of(const struct checkpoint *ck, const struct meta *m, int64_t *out)
{
    const uint8_t *v = ck_view(ck, m->value).data;
    switch (m->type) {
    case META_U8: *out = *v; return true;
    case META_I8: *out = (int8_t)*v; return true;
    case META_U16: *out = load_u16(v); return true;
    case META_I16: *out = (int16_t)load_u16(v); return true;
    case META_U32: *out = load_u32(v); return true;
    case META_I32: *out = (int32_t)load_u32(v); return true;
    case META_U64: *out = load_u64(v) > INT64_MAX ? INT64_MAX : (int64_t)load_u64(v); return true;
    case META_I64: *out = (int64_t)load_u64(v); return true;
    default: return false;
    }
}

int meta_int(const struct checkpoint *ck, const char *key, int64_t lo, int64_t hi, const int64_t *missing, int64_t *out, struct error *err)
{
    const struct meta *m = meta_find(ck, key);
    if (!m && !missing) return fail_missing(err, key);
    if (!m) return *out = *missing, OK;
    if (!integer_of(ck, m, out)) return fail_type(err, m, key);
    if (*out >= lo && *out <= hi) return OK;
    return fail(err, ERR_INCONSISTENT, "value", m->value.at, "The metadata key %s is %lld; it must be from %lld to %lld.", key, (long long)*out,
                (long long)lo, (long long)hi);
}

int meta_float(const struct checkpoint *ck, const char *key, double lo, double hi, const double *missing, double *out, struct error *err)
{
    const struct meta *m = meta_find(ck, key);
    int64_t whole;
    if (!m && !missing) return fail_missing(err, key);
    if (!m) return *out = *missing, OK;
    if (m->type == META_F32) *out = (double)load_f32(ck_view(ck, m->value).data);
    else if (m->type == META_F64) memcpy(out, ck_view(ck, m->value).data, sizeof *out);
    else if (integer_of(ck, m, &whole)) *out = (double)whole;
    else return fail_type(err, m, key);
    if (*out >= lo && *out <= hi) return OK; /* NaN fails both */
    return fail(err, ERR_INCONSISTENT, "value", m->value.at, "The metadata key %s is %g; it must be from %g to %g.", key, *out, lo, hi);
}

int meta_bool(const struct checkpoint *ck, const char *key, bool missing, bool *out, struct error *err)
{
    const struct meta *m = meta_find(ck, key);
    *out = missing;
    if (!m) return OK;
    if (m->type != META_BOOL) return fail_type(err, m, key);
    *out = *ck_view(ck, m->value).data != 0;
    return OK;
}

int meta_text(const struct checkpoint *ck, const char *key, bool required, struct bytes *out, struct error *err)
{
    const struct meta *m = meta_find(ck, key);
    *out = (struct bytes){NULL, 0};
    if (!m) return required ? fail_missing(err, key) : OK;
    if (m->type != META_STRING) return fail_type(err, m, key);
    *out = ck_view(ck, m->value);
    return OK;
}

int meta_array(const struct checkpoint *ck, const char *key, enum meta_type element, bool required, struct bytes *data, uint64_t *count, struct error *err)
{
    const struct meta *m = meta_find(ck, key);
    *data = (struct bytes){NULL, 0};
    *count = 0;
    if (!m) return required ? fail_missing(err, key) : OK;
    if (m->type != META_ARRAY || m->element != element) return fail_type(err, m, key);
    *data = ck_view(ck, m->value);
    *count = m->count;
    return OK;
}

/* --- split models ---------------------------------------------------------------------------------------- */

int ck_split(const struct checkpoint *ck, struct split *out, struct error *err)
{
    const int64_t none = 0, one = 1;
    int status = meta_int(ck, "split.count", 0, UINT16_MAX, &one, &out->files, err);
    if (!status) status = meta_int(ck, "split.no", 0, UINT16_MAX, &none, &out->number, err);
    if (!status) status = meta_int(ck, "split.tensors.count", 0, TENSORS_MAX, &none, &out->tensors, err);
    if (out->files == 0) out->files = 1;
    return status;
}

uint64_t ck_tensors_in_all(const struct checkpoint *ck)
{
    struct split split;
    return !ck_split(ck, &split, NULL) && (uint64_t)split.tensors > ck->n_tensors ? (uint64_t)split.tensors : ck->n_tensors;
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

int ck_bind(const struct checkpoint *ck, const char *name, uint64_t cols, uint64_t rows, uint64_t stack, struct tensor **out, struct error *err)
{
    struct tensor *t = ck_find(ck, name);
    if (!t) return fail(err, ERR_FORMAT, "missing", 0, "The tensor %s is missing.", name);
    uint64_t high = rows ? rows : 1;
    if (t->cols != cols || t->rows != high * stack || t->stack != stack || t->n_dims > 3)
        return fail(err, ERR_INCONSISTENT, "shape", t->name.at, "The tensor %s is %llu x %llu x %llu (%d dimensions); the metadata asks for %llu x %llu x %llu.", name,
                    (unsigned long long)t->cols, (unsigned long long)(t->rows / t->stack), (unsigned long long)t->stack, t->n_dims,
                    (unsigned long long)cols, (unsigned long long)high, (unsigned long long)stack);
    const struct layout_info *info = &layouts[t->type->layout];
    if (t->type->layout == LAYOUT_NONE || (!rows && (t->type->block != 1 || info->scaled)))
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at, "The tensor %s has the weight type %s, which this version does not run.", name, t->type->name);
    if (t->cols % (uint64_t)info->columns)
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at, "The tensor %s of the type %s has %llu columns; whole blocks of %d are supported.", name, t->type->name,
                    (unsigned long long)t->cols, info->columns);
    *out = t;
    return OK;
}

/* --- data ---------------------------------------------------------------------------------------------- */

static size_t row_bytes(const struct tensor *t) { return (size_t)(t->bytes / t->rows); }

/* The largest group of rows that is wanted. */
static size_t largest_group(const struct checkpoint *ck)
{
    size_t largest = 0;
    for (size_t i = 0; i < ck->n_tensors; i++) {
        const struct tensor *t = &ck->tensors[i];
        size_t group = t->put ? row_bytes(t) * (t->rows < GROUP ? (size_t)t->rows : GROUP) : 0;
        if (group > largest) largest = group;
    }
    return largest;
}

uint64_t ck_data_cost(const struct checkpoint *ck) { return mem_cost(largest_group(ck)); }

uint64_t ck_held(const struct checkpoint *ck) { return ck->header_room + ck->n_tensors * (sizeof *ck->tensors + 2 * MEM_ALIGN); }

int ck_data_begin(struct checkpoint *ck, struct error *err)
{
    ck->stage_room = largest_group(ck);
    ck->stage = mem_alloc_raw(ck->mem, ck->stage_room);
    if (!ck->stage) return fail(err, ERR_MEM_LOAD, "stage", 0, "Not enough memory to load the file (%zu bytes).", ck->stage_room);
    ck->pos = ck->begin;
    return OK;
}

/* Bytes of row groups of tensor t: whole groups go on at once, the rest waits in the stage. Returns how many were taken. */
static size_t put_rows(struct checkpoint *ck, const struct tensor *t, const uint8_t *bytes, size_t n)
{
    size_t row = row_bytes(t), left = (size_t)t->rows - (size_t)ck->next_row;
    size_t group = (left < GROUP ? left : GROUP) * row;
    if (ck->staged == 0 && n >= group) {
        size_t rows = n / row < left ? n / row / GROUP * GROUP : left;
        t->put(t->context, ck->next_row, (int)rows, bytes);
        ck->next_row += (int)rows;
        return rows * row;
    }
    size_t take = group - ck->staged < n ? group - ck->staged : n;
    memcpy(ck->stage + ck->staged, bytes, take);
    ck->staged += take;
    if (ck->staged == group) {
        t->put(t->context, ck->next_row, (int)(group / row), ck->stage);
        ck->next_row += (int)(group / row);
        ck->staged = 0;
    }
    return take;
}

/* Bytes of this chunk that nobody wants before the next bound tensor, or of its own rows. */
static size_t take_data(struct checkpoint *ck, const struct tensor *t, const uint8_t *bytes, size_t n)
{
    uint64_t end = t->offset + t->bytes;
    if (ck->pos < t->offset || !t->put) {
        uint64_t skip = (ck->pos < t->offset ? t->offset : end) - ck->pos;
        return skip < n ? (size_t)skip : n;
    }
    return put_rows(ck, t, bytes, end - ck->pos < n ? (size_t)(end - ck->pos) : n);
}

void ck_data(struct checkpoint *ck, const uint8_t *bytes, size_t n)
{
    while (n && ck->current < ck->n_tensors) {
        const struct tensor *t = &ck->tensors[ck->current];
        size_t taken = take_data(ck, t, bytes, n);
        ck->pos += taken;
        bytes += taken;
        n -= taken;
        if (ck->pos == t->offset + t->bytes) ck->current++, ck->next_row = 0;
    }
    ck->pos += n;
}

int ck_data_ended(const struct checkpoint *ck, struct error *err)
{
    const struct format *f = ck->format;
    char name[QUOTED];
    if (ck->pos == ck->file_size || (ck->pos > ck->file_size && !f->too_long)) return OK;
    if (ck->pos > ck->file_size)
        return fail(err, ERR_FORMAT, f->too_long, ck->file_size, "The file has %llu bytes; by its header it should have %llu.", (unsigned long long)ck->pos,
                    (unsigned long long)ck->file_size);
    return fail(err, ERR_FORMAT, f->too_short ? f->too_short : "truncated", ck->pos,
                "The file ends at byte %llu, before the end of the tensor \"%.64s\"; it should have %llu bytes.", (unsigned long long)ck->pos,
                quoted(ck_view(ck, ck->tensors[ck->current].name), name), (unsigned long long)ck->file_size);
}
