/* SPDX-License-Identifier: MIT
 *
 * The kernel table: everything that computes over a row, a panel or a block, once per instruction set.
 *
 * kernels_scalar is complete and is the reference; kernels_simd() starts as a copy of it and overrides what it has.
 * Every entry gives the same bits in both (tests/c/test_kernels.c compares with ==), so the choice of table changes
 * only the speed. The formulas are normative: see MODEL.md, "Arithmetic". In one table gemv, few and gemm of a layout
 * give the same bits too, whatever the tile: a block's codes are summed as integers, which is exact, and floats are
 * added in the order of the columns. The scalar table has gemm only, which does the work of each gemv and few that is
 * NULL.
 */
#ifndef QUERN_KERNELS_H
#define QUERN_KERNELS_H

#include "compute/backend.h"
#include "compute/pages.h"
#include "weights/pack.h"

enum {
    TILE = 6,     /* most rows (tokens) of one gemm call */
    FLOAT_TILE = 5, /* the same for floats: V8 reserves one register, and of six rows' sums one would lie in memory */
    FEW_TILE = 4, /* the same where rows are few */
    FEW_MOST = 8, /* up to this many rows are few; for more, expanding pays */
    STREAMS = 8   /* panels of one gemv call */
};

/* How a SIMD build multiplies codes: which products of bytes its one dot instruction gives exactly. The instruction
 * differs from processor to processor (and is absent without relaxed SIMD), so it is probed when the engine starts. */
enum dots {
    DOTS_I16, /* no dot of bytes: codes are widened to 16 bits */
    DOTS_U7,  /* signed by 0..127, sums of two in 16 bits: exact on every processor */
    DOTS_U8,  /* signed by 0..255 (x86 with VNNI) */
    DOTS_S8,  /* signed by signed (ARM, x86 with VNNI-INT8) */
    DOTS_COUNT
};
extern const char *const dots_names[DOTS_COUNT];

/* A product depends on the number of rows: one row is limited by memory, few rows share the reads of a packed panel,
 * many share an expanded panel. So tables by rows have an entry for each of 1 .. FEW_MOST, and one for many. */
enum { ONE_ROW = 1, MANY_ROWS = FEW_MOST + 1, ROWS_KINDS };
static inline int rows_kind(int n) { return min_int(n, MANY_ROWS); }

/* The form of activation codes that a product needs: bytes; widened to 16 bits; or (packed panels) even and odd columns
 * apart, prepared for words of two or of four codes, or as tables of sums, which exist for FEW_MOST rows at most. */
enum form { FORM_BYTES, FORM_WORDS, FORM_APART, FORM_TWOS, FORM_FOURS, FORM_TABLES, FORMS };

/* Activations of n rows in the forms of the products, in blocks of 32 columns; cols is a multiple of 32 if codes are
 * used. */
struct act {
    const float *x;       /* [n, cols] for float weights */
    const int8_t *code;   /* [n, cols] -127..127, for quantised weights */
    const float *scale;   /* [n, cols / 32] */
    const int16_t *sum;   /* [n, cols / 16] sums of 16 codes */
    const uint8_t *tiles[FORMS]; /* the same in each form, tile after tile; NULL if the table has no arrange */
    int cols;
};

/* out [n_rows, 8] = rows row .. row + n_rows - 1 (a tile of tile_rows()) times one panel [8, cols], expanded if the
 * table has an expand for its layout. */
typedef void gemm_fn(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out);

/* out [n, n_rows, 8] = one row, or a tile of few rows, times n neighbouring packed panels that are panel_bytes apart. n
 * is 1 .. STREAMS for one row, always STREAMS with TOGETHER, and 1 .. few_at_once for few rows. */
typedef void gemv_fn(const uint8_t *panels, size_t panel_bytes, int n, const struct act *a, int row, int n_rows,
                     float *out);

/* One row, and few rows of wide codes, are limited by memory, and the best order of reading depends on the processor.
 * One that looks some hundred instructions ahead and prefetches only within a page waits least with eight streams
 * (Intel's of 2023 are twice as fast). One that follows a single stream far ahead loses a third with eight (AMD's of
 * 2022). cpu/race.c finds out. */
enum order { TOGETHER, IN_TURN, ORDERS };

/* The factor that a half lacks when its bits are moved into the place of a float's: the difference of the exponents'
 * biases. */
#define F16_SCALE 0x1p112f

/* One query head of one row, and its running softmax over the positions seen so far. */
struct query {
    /* [head_dim] the factor for float keys: itself, or `scaled` if the keys are divided by F16_SCALE */
    const float *q;
    const float *scaled; /* [head_dim] itself * F16_SCALE */
    const float *itself; /* [head_dim] used by attention.c */
    const int8_t *code;  /* [head_dim] and */
    const float *scale;  /* [head_dim / 32]: q quantised, if the keys are */
    float *acc;          /* [head_dim], 0 at the start */
    float max, sum;      /* -INFINITY and 0 at the start */
    int seen;            /* number of visible positions of the current page, from its first: 0..KV_PAGE */
};

/* Rows of one value head of a linear layer. q and k [n, head_dim] have the norm 1, v [n, head_dim] are the values;
 * their rows are `stride` values apart, and those of y [n, head_dim] are y_stride apart. */
struct delta {
    float *y;
    size_t y_stride;
    const float *q, *k, *v;
    size_t stride;
    const float *beta, *decay; /* [n] */
    int n, head_dim;
    const float *from; /* [head_dim of keys, head_dim of values] the state before the first row; it may be `to` */
    float *to;         /* and after the last */
};

struct kernels {
    const char *name;
    enum dots dots;
    int tile;                    /* rows of a full tile where rows are many and codes are multiplied: 4 or TILE */
    gemm_fn *gemm[LAYOUT_COUNT];
    gemv_fn *few[ROWS_KINDS][LAYOUT_COUNT]; /* by number of rows; NULL if gemm is as good */
    int few_at_once[LAYOUT_COUNT]; /* most panels of one call of few: STREAMS or 1 */
    gemv_fn *gemv[ORDERS][LAYOUT_COUNT]; /* NULL if gemm is as good */
    enum form form[ROWS_KINDS][LAYOUT_COUNT]; /* form of activations that a product needs */
    /* panel -> out [cols / 32 * expanded], its codes and scales ready for gemm: done once for all tiles of a chunk.
     * NULL: gemm takes the packed panel. */
    void (*expand[LAYOUT_COUNT])(const uint8_t *panel, int cols, uint8_t *out);
    /* Rows row .. row + n_rows - 1 of code, scale and sum -> their tile of [n_rows, cols / 32 * arranged] bytes. NULL:
     * not needed. */
    void (*arrange[FORMS])(const struct act *a, int row, int n_rows, uint8_t *tile);
    /* most bytes of an expanded block of 8 rows; bytes of an arranged block of one row, 0 without an arrange */
    size_t expanded, arranged[FORMS];
    /* x [cols] -> code [cols], scale [cols / 32], sum [cols / 16]; cols a multiple of 32 */
    void (*quantize)(const float *x, int cols, int8_t *code, float *scale, int16_t *sum);
    /* y = x / sqrt(mean(x^2) + eps) * w, all [n]; y may be x */
    void (*rmsnorm)(float *y, const float *x, const float *w, int n, float eps);
    /* y = (x - mean) / sqrt(variance + eps) * w + bias, all [n]; y may be x */
    void (*layernorm)(float *y, const float *x, const float *w, const float *bias, int n, float eps);
    void (*gelu)(float *x, int n), (*gelu_erf)(float *x, int n);
    /* turns one head x [2 * half]: pairs (i, i + half) by the angle with this cosine and sine, [half] each */
    void (*rope)(float *x, const float *cosine, const float *sine, int half);
    void (*swiglu)(float *gate, const float *up, int n); /* gate = silu(gate) * up */
    void (*gate)(float *x, const float *g, int n);       /* x *= sigmoid(g) */
    /* y = silu(sum of taps[j] * x[j]), all [n]; the taps of a row are `stride` values after those of the row before */
    void (*convolve)(float *y, const float *const x[TAPS], const float *taps, size_t stride, int n);
    void (*unit)(float *x, float scale, int n);          /* x = x / sqrt(sum(x^2) + 1e-6) * scale */
    /* for each row: state *= decay; state += k (v - state^T k)^T beta; y = state^T q */
    void (*delta)(const struct delta *d);
    void (*add)(float *x, const float *y, int n);        /* x += y */
    void (*add_scaled)(float *x, const float *y, float scale, int n); /* x += scale * y */
    void (*widen)(float *out, const uint16_t *in, int n);  /* f16 -> f32 */
    /* finite f16 -> f32 divided by F16_SCALE; n a multiple of 8. NULL: widen is as good */
    void (*spread)(float *out, const uint16_t *in, int n);
    void (*narrow)(uint16_t *out, const float *in, int n); /* f32 -> f16 */
    /* values = code * scale: n positions of codes [n, dim] and scales [n, dim / 32]; dim a multiple of 32 */
    void (*dequantize)(float *v, const int8_t *code, const float *scale, int n, int dim);

    /* Attention of n queries over one page of one kv head, in three steps. The places of keys and values are
     * key_place() and value_place(), those of codes [KV_PAGE, dim]. p [n, KV_PAGE] has a row for each query; only its
     * first `seen` values are used. */
    void (*scores)(float *p, const struct query *q, int n, const float *k, int dim, float scale); /* p = q.k * scale */
    void (*scores_q8)(float *p, const struct query *q, int n, const int8_t *code, const float *d, int dim, float scale);
    /* p = exp(p - max); updates max, sum and acc */
    void (*soften)(float *p, struct query *q, int n, int dim);
    /* acc += p * v, positions in order */
    void (*values)(float *p, const struct query *q, int n, const float *v, int dim);
    /* The same for finite f16, dims that are multiples of 16, and few queries: halves are widened in registers, and the
     * other factor is scaled beforehand, exactly. NULL if widening first is as good. values_f16 leaves nothing useful
     * in p. */
    void (*scores_f16)(float *p, const struct query *q, int n, const uint16_t *k, int dim, float scale);
    void (*values_f16)(float *p, const struct query *q, int n, const uint16_t *v, int dim);
};

extern const struct kernels kernels_scalar;
/* The table for one kind of dots of this build (native builds have all). */
struct kernels kernels_simd(enum dots dots);
/* Finds out by trying what this processor's dot gives exactly. */
enum dots dots_probe(void);
/* The fastest kind for this build on this processor. */
enum dots dots_choose(void);

/* Rows of the next tile when `left` of n rows are left: as few and as even tiles as possible. All layouts of codes have
 * the same tiles. */
static inline int tile_rows(const struct kernels *k, enum layout layout, int n, int left)
{
    int codes = n > FEW_MOST ? k->tile : FEW_TILE, most = layouts[layout].kind == KIND_FLOAT ? FLOAT_TILE : codes,
        tiles = (left + most - 1) / most;
    return (left + tiles - 1) / tiles;
}

#endif
