/* SPDX-License-Identifier: MIT
 *
 * The part of printf that error messages need: %s, %.*s, %d, %u, %X, %zu, %llu, %c. In the grammar module it replaces
 * the C library's, which with its floating point would be an eighth of the module's size.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct sink {
    char *out;
    size_t size, n;
};

static void put(struct sink *s, char c)
{
    if (s->n + 1 < s->size) s->out[s->n] = c;
    s->n++;
}

static void put_number(struct sink *s, uint64_t value, unsigned base)
{
    char digits[20];
    int n = 0;
    do digits[n++] = "0123456789ABCDEF"[value % base];
    while (value /= base);
    while (n > 0) put(s, digits[--n]);
}

static void put_signed(struct sink *s, int64_t value)
{
    if (value < 0) put(s, '-');
    put_number(s, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
}

int vsnprintf(char *out, size_t size, const char *format, va_list args)
{
    struct sink s = {out, size, 0};
    for (; *format; format++) {
        size_t most = SIZE_MAX;
        int longs = 0;
        if (*format != '%') {
            put(&s, *format);
            continue;
        }
        if (format[1] == '.' && format[2] == '*') most = (size_t)va_arg(args, int), format += 2;
        for (; format[1] == 'l' || format[1] == 'z'; format++) longs += format[1] == 'l';
        switch (*++format) {
        case 's':
            for (const char *text = va_arg(args, const char *); most-- > 0 && *text; text++) put(&s, *text);
            break;
        case 'c': put(&s, (char)va_arg(args, int)); break;
        case 'd': put_signed(&s, longs > 1 ? va_arg(args, long long) : va_arg(args, int)); break;
        case 'u': put_number(&s, longs > 1 ? va_arg(args, unsigned long long) : va_arg(args, unsigned), 10); break;
        case 'X': put_number(&s, va_arg(args, unsigned), 16); break;
        default: put(&s, *format);
        }
        if (!*format) break;
    }
    if (size) out[s.n < size ? s.n : size - 1] = 0;
    return (int)s.n;
}

int snprintf(char *out, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out, size, format, args);
    va_end(args);
    return n;
}
