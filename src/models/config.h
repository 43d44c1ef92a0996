/* SPDX-License-Identifier: MIT
 *
 * The metadata that all decoders here have in common.
 */
#ifndef QUERN_CONFIG_H
#define QUERN_CONFIG_H

#include "models/rope.h"

/* A model's own keys: "qwen3." and so on. */
struct keys {
    const struct checkpoint *ck;
    const char *prefix;
    int n_blocks;                /* elements of arrays by layer; 0: not known yet */
    const uint8_t *no_kv;        /* [n_blocks] layers that may say that they have no key-value heads; NULL: none */
    const int64_t *feed_forward; /* the feed-forward size, if the metadata lacks it; NULL: an error */
    const double *theta;         /* the same for the base of RoPE */
};

/* Reads an integer of lo .. hi, one for all layers or an equal one for each; a missing one is an error unless there is
 * a default. */
int config_int(const struct keys *k, const char *name, int64_t lo, int64_t hi, const int64_t *missing, int *out,
               struct error *err);
int config_float(const struct keys *k, const char *name, double lo, double hi, const double *missing, double *out,
                 struct error *err);
/* Fills c, but for the number of layers and what only some decoders have, and rope. ERR_FORMAT "missing", "kv-type";
 * ERR_INCONSISTENT "value"; ERR_UNSUPPORTED. */
int config_decoder(const struct keys *k, struct model_config *c, struct rope *rope, struct error *err);

#endif
