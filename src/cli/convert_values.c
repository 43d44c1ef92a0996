/* SPDX-License-Identifier: MIT
 *
 * Changes weights from the form of a folder to that of GGUF files.
 */
#include "cli/convert_values.h"

#include "base/num.h"
#include "load/metadata.h"
#include "models/model.h"

#include <string.h>

/* Where a layer's value heads lie. */
static const struct place {
    const char *role;
    bool single;  /* a head is one row or column, not `size` of them */
    bool columns;
    bool behind;  /* queries and keys come first */
} places[] = {
    {"attn_qkv.weight", false, false, true},   {"ssm_conv1d.weight", false, false, true},
    {"attn_gate.weight", false, false, false}, {"ssm_out.weight", false, true, false},
    {"ssm_alpha.weight", true, false, false},  {"ssm_beta.weight", true, false, false},
    {"ssm_a", true, true, false},              {"ssm_dt.bias", true, true, false},
};

static int read_heads(const struct checkpoint *ck, const char *prefix, struct storage *out, struct error *err)
{
    static const char *const names[] = {"ssm.group_count", "ssm.time_step_rank", "ssm.state_size"};
    int *const numbers[] = {&out->n_keys, &out->n_values, &out->size};
    int status = OK;
    for (int i = 0; !status && i < 3; i++) {
        char key[KEY_SIZE];
        int64_t value;
        status = meta_int(ck, model_key(key, prefix, names[i]), 1, INT16_MAX, NULL, &value, err);
        if (!status) *numbers[i] = (int)value;
    }
    return status;
}

int storage_read(const struct checkpoint *ck, const char *prefix, struct storage *out, struct error *err)
{
    char key[KEY_SIZE];
    bool grouped = false, halves = false;
    int64_t head = 0;
    *out = (struct storage){0};
    int status = meta_bool(ck, model_key(key, prefix, "norm.zero_centered"), false, &out->zero_centered, err);
    if (!status) status = meta_bool(ck, model_key(key, prefix, "ssm.grouped"), false, &grouped, err);
    if (!status) status = meta_bool(ck, model_key(key, prefix, "rope.halves"), false, &halves, err);
    if (!status && halves)
        status = meta_int(ck, model_key(key, prefix, "attention.key_length"), 1, HEAD_MOST, NULL, &head, err);
    out->head = (int)head;
    return status || !grouped ? status : read_heads(ck, prefix, out, err);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

struct change change_of(const struct storage *s, char *name)
{
    static const char logarithm[] = ".ssm_a_log";
    struct change c = {0};
    if (s->zero_centered && ends_with(name, logarithm)) {
        name[strlen(name) - strlen("_log")] = 0;
        c.decay = true;
    }
    c.add_one = s->zero_centered && ends_with(name, "norm.weight") && !ends_with(name, "ssm_norm.weight");
    if (ends_with(name, ".attn_q.weight") || ends_with(name, ".attn_k.weight")) c.paired = s->head;
    const char *role = strncmp(name, "blk.", 4) ? NULL : strchr(name + 4, '.');
    for (size_t i = 0; s->n_values && role && i < sizeof places / sizeof *places; i++) {
        const struct place *p = &places[i];
        if (strcmp(role + 1, p->role)) continue;
        c.n_keys = s->n_keys;
        c.n_values = s->n_values;
        c.size = p->single ? 1 : s->size;
        c.columns = p->columns;
        c.first = p->behind ? 2 * s->n_keys * s->size : 0;
    }
    return c;
}

/* Value head j of key head k is head k * (n_values / n_keys) + j in the folder, and head j * n_keys + k in the file. */
static int place(const struct change *c, int i)
{
    int each = c->n_values / c->n_keys, head = (i - c->first) / c->size, within = (i - c->first) % c->size;
    return c->first + (head % each * c->n_keys + head / each) * c->size + within;
}

int change_place(const struct change *c, int row)
{
    if (c->paired) {
        int within = row % c->paired, half = c->paired / 2;
        return row - within + within % half * 2 + within / half;
    }
    return c->n_values && !c->columns && row >= c->first ? place(c, row) : row;
}

void change_row(const struct change *c, float *x, int cols, float *scratch)
{
    if (c->n_values && c->columns) {
        memcpy(scratch, x, (size_t)cols * sizeof *x);
        for (int i = 0; i < cols; i++) x[place(c, i)] = scratch[i];
    }
    for (int i = 0; c->add_one && i < cols; i++) x[i] += 1;
    for (int i = 0; c->decay && i < cols; i++) x[i] = (float)-num_exp64((double)x[i]);
}
