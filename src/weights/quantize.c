/* SPDX-License-Identifier: MIT
 *
 * Q8_0 and Q4_0 from floats without a search, which is quick enough for loading models; panels of them; and the table
 * of all types. fit.c has the types whose scales are searched.
 */
#include "weights/blocks.h"
#include "weights/quantize.h"

#include <string.h>

/* --- Q8_0 and Q4_0 --------------------------------------------------------------------------------------- */

/* One function for both types, since it is part of a page's download. Codes are rounded half away from 0; for Q4_0
 * after 8 is added. */
static bool quantize_32(const float *x, int n, uint8_t *out, bool four)
{
    size_t bytes = four ? 18 : 34;
    bool ok = true;
    for (; n > 0; n -= 32, x += 32, out += bytes) {
        float most = largest(x, 32), d = four ? most / -8 : (most < 0 ? -most : most) / 127, id = inverse(d);
        memset(out, 0, bytes);
        if (!(d <= HALF_MOST && d >= -HALF_MOST)) {
            ok = broken(out, bytes, 0);
            continue;
        }
        store_half(out, d);
        for (int i = 0; i < 32; i++) {
            float v = x[i] * id;
            int code = (int)(v + (four ? 8.5f : v < 0 ? -0.5f : 0.5f));
            if (four) out[2 + i % 16] |= (uint8_t)(min_int(code, 15) << (i / 16 * 4));
            else out[2 + i] = (uint8_t)code;
        }
    }
    return ok;
}

bool quantize_q8_0(const float *x, const float *w, int n, uint8_t *out)
{
    (void)w;
    return quantize_32(x, n, out, false);
}

bool quantize_q4_0(const float *x, const float *w, int n, uint8_t *out)
{
    return w ? fit_q4_0(x, w, n, out) : quantize_32(x, n, out, true);
}

/* --- floats ----------------------------------------------------------------------------------------------------- */

static bool store_f32(const float *x, const float *w, int n, uint8_t *out)
{
    (void)w;
    float most = largest(x, n);
    memcpy(out, x, (size_t)n * sizeof *x);
    return most - most == 0;
}

static bool store_f16(const float *x, const float *w, int n, uint8_t *out)
{
    (void)w;
    float most = largest(x, n);
    for (int i = 0; i < n; i++) store_half(out + 2 * i, x[i]);
    return most < 65520 && most > -65520;
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

quantize_fn *quantizer(const struct dtype *type)
{
    static const struct {
        const char *name;
        quantize_fn *quantize;
    } all_types[] = {{"F32", store_f32},      {"F16", store_f16},      {"Q8_0", quantize_q8_0},
                     {"Q4_0", quantize_q4_0}, {"Q4_K", quantize_q4_k}, {"Q5_K", quantize_q5_k},
                     {"Q6_K", quantize_q6_k}, {"IQ4_XS", quantize_iq4_xs}};
    for (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++)
        if (!strcmp(type->name, all_types[i].name)) return all_types[i].quantize;
    return NULL;
}

void read_floats(const struct dtype *type, const uint8_t *values, int n, float *out)
{
    for (int i = 0; i < n; i++, values += type->bytes)
        out[i] = type->layout == LAYOUT_F32   ? load_f32(values)
                 : type->layout == LAYOUT_F16 ? f32_from_f16(load_u16(values))
                                              : f32_from_bf16(load_u16(values));
}

void quantize_panel(const struct dtype *from, const uint8_t *rows, size_t row_bytes, int n, int cols,
                    const struct dtype *to, uint8_t *panel)
{
    enum { WIDTH = 256 }; /* whole blocks of every type */
    for (int c = 0; c < cols; c += WIDTH) {
        uint8_t blocks[PANEL_ROWS][WIDTH / 32 * 34];
        float x[WIDTH];
        int width = min_int(WIDTH, cols - c);
        for (int r = 0; r < n; r++) {
            const uint8_t *row = rows + (size_t)r * row_bytes + (size_t)c / from->block * from->bytes;
            if (from->block > 1) unpack_row(from, row, width, x);
            else read_floats(from, row, width, x);
            quantize_32(x, width, blocks[r], to->layout == LAYOUT_Q4);
        }
        pack_panel(to, blocks[0], sizeof blocks[0], n, width, panel);
        panel += panel_bytes(to->layout, width);
    }
}
