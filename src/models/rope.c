/* SPDX-License-Identifier: MIT
 *
 * Reads the keys of RoPE and its scaling, and computes the frequencies. All in double, with our own exp and log.
 */
#include "models/rope.h"

#include "base/num.h"
#include "base/reader.h"
#include "load/metadata.h"

#include <math.h>

static const double TURN = 6.283185307179586; /* radians */

static int scaling_float(const struct checkpoint *ck, const char *architecture, const char *name, double lo, double hi,
                         const double *missing, double *out, struct error *err)
{
    char part[KEY_SIZE], key[KEY_SIZE];
    return meta_float(ck, model_key(key, architecture, model_key(part, "rope.scaling", name)), lo, hi, missing, out,
                      err);
}

static int read_yarn(const struct checkpoint *ck, const char *a, const struct model_config *c, struct rope *r,
                     struct error *err)
{
    const double length = (double)c->context_length, fast = 32, slow = 1, one = 1;
    double attention, more, mix;
    char key[KEY_SIZE];
    int status = scaling_float(ck, a, "factor", 1, 1e6, NULL, &r->factor, err);
    if (!status) status = scaling_float(ck, a, "original_context_length", 1, 1e12, &length, &r->original, err);
    if (!status) status = scaling_float(ck, a, "yarn_beta_fast", 1e-3, 1e6, &fast, &r->beta_fast, err);
    if (!status) status = scaling_float(ck, a, "yarn_beta_slow", 1e-3, 1e6, &slow, &r->beta_slow, err);
    if (!status) status = scaling_float(ck, a, "attn_factor", 1e-3, 1e3, &one, &attention, err);
    if (!status) status = scaling_float(ck, a, "yarn_attn_factor", 1e-3, 1e3, &one, &more, err);
    if (!status) status = scaling_float(ck, a, "yarn_ext_factor", -1e9, 1e9, &one, &mix, err);
    if (!status) status = meta_bool(ck, model_key(key, a, "rope.scaling.yarn_truncate"), true, &r->whole, err);
    if (status) return status;
    if (mix >= 0 && mix != 1)
        return fail(err, ERR_UNSUPPORTED, "rope-scaling", 0,
                    "YaRN with an extrapolation factor of %g is not supported; only 1 is.", mix);
    if (r->beta_slow > r->beta_fast)
        return fail(err, ERR_INCONSISTENT, "value", 0,
                    "YaRN's slow frequencies begin at %g turns, its fast ones at %g.", r->beta_slow, r->beta_fast);
    if (r->theta <= 1)
        return fail(err, ERR_INCONSISTENT, "value", 0, "YaRN needs a RoPE base above 1; it is %g.", r->theta);
    r->magnitude = (0.1 * num_log64(r->factor) + 1) * attention * more;
    return OK;
}

/* Llama 3's: its keys exist in folders only. */
static int read_llama3(const struct checkpoint *ck, const char *a, struct rope *r, struct error *err)
{
    int status = scaling_float(ck, a, "factor", 1, 1e6, NULL, &r->factor, err);
    if (!status) status = scaling_float(ck, a, "original_context_length", 1, 1e12, NULL, &r->original, err);
    if (!status) status = scaling_float(ck, a, "high_freq_factor", 1e-3, 1e6, NULL, &r->beta_fast, err);
    if (!status) status = scaling_float(ck, a, "low_freq_factor", 1e-3, 1e6, NULL, &r->beta_slow, err);
    if (status || r->beta_slow < r->beta_fast) return status;
    return fail(err, ERR_INCONSISTENT, "value", 0,
                "Llama 3's scaling of RoPE has the low_freq_factor %g, which must be below the high_freq_factor %g.",
                r->beta_slow, r->beta_fast);
}

/* Pairs belong to time, row and column in turn, until a section is used up. */
static int read_sections(const struct checkpoint *ck, const char *architecture, struct rope *r, struct error *err)
{
    char key[KEY_SIZE];
    struct bytes list;
    uint64_t n;
    int64_t s[4] = {0};
    int half = r->dim / 2;
    const struct meta *m = meta_find(ck, model_key(key, architecture, "rope.dimension_sections"));
    int status = meta_array(ck, key, m && m->element == META_U32 ? META_U32 : META_I32, false, &list, &n, err);
    if (status || !list.data) return status;
    for (uint64_t i = 0; i < n && i < 4; i++) s[i] = (int32_t)load_u32(list.data + 4 * i);
    if (n < 3 || n > 4 || s[3] || s[0] < 0 || s[1] < 0 || s[2] < 0 || s[0] + s[1] + s[2] != half ||
        3 * s[1] > half + 2 || 3 * s[2] > half + 2)
        return fail(err, ERR_INCONSISTENT, "value", 0, "The sections of RoPE in %s do not suit %d columns.", key,
                    r->dim);
    for (int i = 0; i < 3; i++) r->sections[i] = (int)s[i];
    return OK;
}

int rope_axis(const struct rope *r, int i) { return i % 3 && i < 3 * r->sections[i % 3] ? i % 3 : 0; }

int rope_read(const struct checkpoint *ck, const char *architecture, const struct model_config *c, struct rope *out,
              struct error *err)
{
    struct bytes type;
    char text[QUOTED], key[KEY_SIZE];
    *out = (struct rope){.dim = c->rope_dim, .theta = c->rope_theta, .factor = 1, .magnitude = 1};
    int status = read_sections(ck, architecture, out, err);
    if (!status) status = meta_text(ck, model_key(key, architecture, "rope.scaling.type"), false, &type, err);
    if (status || !type.data || bytes_equal(type, "none")) return status;
    out->scaling = bytes_equal(type, "yarn") ? ROPE_YARN : bytes_equal(type, "llama3") ? ROPE_LLAMA3 : ROPE_AS_IS;
    if (out->scaling == ROPE_YARN) return read_yarn(ck, architecture, c, out, err);
    if (out->scaling == ROPE_LLAMA3) return read_llama3(ck, architecture, out, err);
    return fail(err, ERR_UNSUPPORTED, "rope-scaling", 0,
                "The RoPE scaling type \"%.64s\" is not supported in this version; none, yarn and llama3 are.",
                quoted(type, text));
}

/* The pair of columns that turns this often over the original context. */
static double column_of(const struct rope *r, double turns)
{
    return r->dim * num_log64(r->original / (turns * TURN)) / (2 * num_log64(r->theta));
}

static double frequency(const struct rope *r, int i) { return num_exp64(-2.0 * i / r->dim * num_log64(r->theta)); }

float rope_divisor(const struct rope *r, int i)
{
    double turns = r->original * frequency(r, i) / TURN;
    double share = fmin(fmax((turns - r->beta_slow) / (r->beta_fast - r->beta_slow), 0), 1); /* that stays */
    return (float)(1 / ((1 - share) / r->factor + share));
}

void rope_frequencies(const struct rope *r, double *out)
{
    const bool yarn = r->scaling == ROPE_YARN && r->factor != 1;
    double low = 0, high = 0;
    if (yarn) {
        low = column_of(r, r->beta_fast);
        high = column_of(r, r->beta_slow);
        low = fmax(r->whole ? floor(low) : low, 0);
        high = fmin(r->whole ? ceil(high) : high, r->dim - 1);
        if (high <= low) high = low + 0.001;
    }
    for (int i = 0; i < r->dim / 2; i++) {
        double fast = frequency(r, i);
        double slow = yarn ? fmin(fmax((i - low) / (high - low), 0), 1) : 0; /* share of division */
        out[i] = yarn ? fast / r->factor * slow + fast * (1 - slow) : fast;
        if (r->scaling == ROPE_LLAMA3) out[i] = fast / (double)rope_divisor(r, i);
    }
}
