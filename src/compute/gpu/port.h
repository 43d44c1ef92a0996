/* SPDX-License-Identifier: MIT
 *
 * What a device does for the backend: the functions that port.js imports into the GPU's build, and the commands
 * that they take. js/gpu/commands.js has the same numbers, and tests/js/gpu/commands.test.mjs compares them.
 *
 * Buffers have ids from 1 on; 0 is none. Everything happens in the order of the calls. No call waits for the device,
 * and none fails: a buffer that the device refuses, or a device that is lost, is told to JavaScript, which ends the
 * load or reports the loss (quern_arrive()).
 */
#ifndef QUERN_GPU_PORT_H
#define QUERN_GPU_PORT_H

#include <stdbool.h>
#include <stdint.h>

/* Kernels, one dispatch each. Words in the comments are numbers of params. Places are in 32-bit words from the
 * beginning of the scratch; those in the table of the step, likewise, from its beginning. */
enum gpu_kernel {
    GPU_EMBED,    /* y [n, cols] = rows of the matrix */
    GPU_PICK,     /* y [n, dim] = rows of x */
    GPU_RMSNORM,  /* y [n, dim] */
    GPU_QUANTIZE, /* codes, scales and sums of [blocks] blocks of x */
    GPU_PRODUCT,  /* y [n, stride] = quantised rows * matrix, for few rows or places of experts */
    GPU_TILE,     /* the same for many rows */
    GPU_FLOATS,   /* the same for rows of floats */
    GPU_ROPE,     /* norms and turns heads of one or two y [n, heads, head_dim] */
    GPU_APPEND,   /* the same; keys and values of a layer */
    GPU_ATTEND,   /* y [n, heads, head_dim] */
    GPU_SWIGLU,   /* y = silu(y) * x */
    GPU_GATE,     /* y = y * sigmoid(x) */
    GPU_ADD,      /* y += x */
    GPU_BIAS,     /* y += vector */
    GPU_ROUTE,    /* a row's experts and shares */
    GPU_PLACES,   /* numbers the places of a route */
    GPU_GATHER,   /* y, by places = x */
    GPU_COMBINE,  /* y = sums of share * x by places */
    GPU_CONVOLVE, /* heads of y = the convolution of x along each run */
    GPU_DECAY,    /* decays of rows and value heads, then what their sigmoids of beta are */
    GPU_DELTA,    /* y = what the states of each run answer */
    GPU_LATER,    /* y = x one row later along each run */
    GPU_JOIN,     /* y = rows of x, each followed by the row of z */
    GPU_LAYERNORM, /* y [n, dim] */
    GPU_GELU,     /* y = gelu(y), with tanh */
    GPU_GELU_ERF, /* y = gelu(y), with the error function */
    GPU_KEEP,     /* rows of an encoder's keys and values */
    GPU_ATTEND_ALL, /* y [n, heads, head_dim], over all of them */
    GPU_HEADS,    /* heads of units come into a matrix, which is `pages` here */
    GPU_KERNELS
};

/* A command is 256 bytes, which is the alignment of parts of a uniform buffer: the list is that buffer. */
enum {
    GPU_PARAMS = 56,
    GPU_PARTS = 4,      /* products of one command, of the same rows and layout, in the same buffer */
    GPU_PART = 16,      /* number of the first param of the first part */
    GPU_PART_WORDS = 8,
    GPU_QUANTISED = 48, /* number of the param from which on it is said where values go that are quantised, too */
};

struct gpu_command {
    /* enum gpu_kernel; enum layout, or with pages enum kv_type, else 0 */
    uint32_t kernel, layout;
    uint32_t matrix;    /* id of the buffer of a matrix's slice, or of a vector */
    uint32_t pages;     /* id of a layer's pages or states, or of the buffer of a second vector */
    uint32_t groups[3]; /* workgroups */
    uint32_t head_dim;  /* of attention and states: shaders are made for it */
    uint32_t params[GPU_PARAMS];
};

/* Bytes that come back from a buffer to an address when a submit arrives. */
struct gpu_read {
    uint32_t buffer, offset, bytes;
    uintptr_t to;
};

/* What kernels know about a layout: struct layout_info as numbers. */
struct gpu_layout {
    int32_t columns, bytes, kind, d, head, scales, block, bits, offset, value_bits, has_table, table[16];
};

/* Called first: the layouts of panels by number, and the pieces of codes by bits, [9][PIECES] of five int32. */
void gpu_layouts(const struct gpu_layout *layouts, int n, const void *pieces);
/* Whether the kernels are fast ones, which do not give the CPU's bits. */
bool gpu_fast(void);
/* The most bytes of a buffer that a kernel can bind. */
uint32_t gpu_binding(void);
/* Makes a buffer of zeros. `bytes` is a multiple of 4 and at most gpu_binding(). */
uint32_t gpu_buffer(double bytes);
void gpu_release(uint32_t buffer);
/* n and offset are multiples of 4; the bytes may be changed when it returns. */
void gpu_write(uint32_t buffer, double offset, const void *bytes, double n);
/* Copies n bytes within a buffer. */
void gpu_copy(uint32_t buffer, double to, double from, double n);
/* Begins commands whose table of the step is [words], and reads. All may be changed when it returns, except what `to`
 * of a read names. */
void gpu_submit(uint32_t scratch, const struct gpu_command *commands, int n, const uint32_t *table, int words,
                const struct gpu_read *reads, int n_reads);

#endif
