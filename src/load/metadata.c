/* SPDX-License-Identifier: MIT
 *
 * Typed access to metadata: binary search in the sorted keys, then checks of type and range.
 */
#include "load/metadata.h"

#include "base/reader.h"

#include <string.h>

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
    return fail(err, ERR_FORMAT, "kv-type", m->key.at,
                "The metadata key %s has a type that does not fit (GGUF type %d).", key, (int)m->type);
}

/* Returns false if the value is not an integer. Unsigned values above INT64_MAX become INT64_MAX. */
static bool read_integer(enum meta_type type, const uint8_t *v, int64_t *out)
{
    switch (type) {
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

static bool integer_of(const struct checkpoint *ck, const struct meta *m, int64_t *out)
{
    return read_integer(m->type, ck_view(ck, m->value).data, out);
}

static int check_range(const struct meta *m, const char *key, int64_t value, int64_t lo, int64_t hi, struct error *err)
{
    if (value >= lo && value <= hi) return OK;
    return fail(err, ERR_INCONSISTENT, "value", m->value.at,
                "The metadata key %s is %lld; it must be from %lld to %lld.", key, (long long)value, (long long)lo,
                (long long)hi);
}

int meta_int(const struct checkpoint *ck, const char *key, int64_t lo, int64_t hi, const int64_t *missing, int64_t *out,
             struct error *err)
{
    const struct meta *m = meta_find(ck, key);
    if (!m && !missing) return fail_missing(err, key);
    if (!m) return *out = *missing, OK;
    if (!integer_of(ck, m, out)) return fail_type(err, m, key);
    return check_range(m, key, *out, lo, hi, err);
}

int meta_element(const struct checkpoint *ck, const char *key, uint64_t i, uint64_t n, int64_t *out, struct error *err)
{
    const struct meta *m = meta_find(ck, key);
    if (m->count != n)
        return fail(err, ERR_INCONSISTENT, "value", m->value.at,
                    "The metadata key %s has %llu elements, but the model has %llu layers.", key,
                    (unsigned long long)m->count, (unsigned long long)n);
    struct bytes all = ck_view(ck, m->value);
    const uint8_t *at = all.data + all.size / (size_t)n * (size_t)i;
    if (m->element == META_BOOL) return *out = *at != 0, OK;
    return read_integer(m->element, at, out) ? OK : fail_type(err, m, key);
}

int meta_float(const struct checkpoint *ck, const char *key, double lo, double hi, const double *missing, double *out,
               struct error *err)
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
    return fail(err, ERR_INCONSISTENT, "value", m->value.at, "The metadata key %s is %g; it must be from %g to %g.",
                key, *out, lo, hi);
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

int meta_array(const struct checkpoint *ck, const char *key, enum meta_type element, bool required, struct bytes *data,
               uint64_t *count, struct error *err)
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
    if (!status) status = meta_int(ck, "split.tensors.count", 0, TENSORS_MOST, &none, &out->tensors, err);
    if (out->files == 0) out->files = 1;
    return status;
}

uint64_t ck_tensors_in_all(const struct checkpoint *ck)
{
    struct split split;
    return !ck_split(ck, &split, NULL) && (uint64_t)split.tensors > ck->n_tensors ? (uint64_t)split.tensors
                                                                                  : ck->n_tensors;
}
