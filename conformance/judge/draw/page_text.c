/* SPDX-License-Identifier: Apache-2.0 */
/* page_text.c - words and numbers of the page. */
#include "judge/draw/page_text.h"

#include "judge/report/markup.h"
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

/* The character that begins here, and how many bytes it has; 0: it is not
 * UTF-8. */
static uint32_t decode(const unsigned char *s, uint32_t *n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = *s;

    *n = 0;
    if (c < 0x80) {
        *n = 1;
    } else if (c >= 0xc2 && c < 0xf5) {
        *n = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    }
    if (*n < 2) {
        return *n == 0 ? 0 : c;
    }
    c &= 0x7fu >> *n;
    for (uint32_t i = 1; i < *n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
        c = c << 6 | (s[i] & 0x3f);
    }
    return c < least[*n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : c;
}

/* Characters that are not seen but change what is seen around them: controls,
 * marks of direction, joiners. */
static bool is_unseen(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c >= 0xe0000;
}

static void escape(FILE *f, const char *text, bool name)
{
    while (*text != '\0') {
        uint32_t n = 0;
        const uint32_t c = decode((const unsigned char *)text, &n);

        if (c == 0) {
            fputc('?', f);
            n = 1;
        } else if (is_unseen(c)) {
            fprintf(f, "[U+%04X]", c);
        } else if (n > 1) {
            (void)fwrite(text, 1, n, f);
        } else {
            markup_put(f, *text);
        }
        if (name && c == '.') {
            fputs("<wbr>", f);
        }
        text += n;
    }
}

void page_escape(FILE *f, const char *text)
{
    escape(f, text, false);
}

void page_escape_name(FILE *f, const char *text)
{
    escape(f, text, true);
}

const char *page_bytes(double bytes, char out[PAGE_NUMBER_BYTES])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    uint32_t i = 0;

    while (i < 5 && bytes >= 1024.0) {
        bytes /= 1024.0;
        i++;
    }
    snprintf(out, PAGE_NUMBER_BYTES, "%.4g %s", bytes, unit[i]);
    return out;
}

const char *page_number(double x, char out[PAGE_NUMBER_BYTES])
{
    double size = fabs(x);

    if (size >= 1e9) {
        snprintf(out, PAGE_NUMBER_BYTES, "%.4gG", x * 1e-9);
    } else if (size >= 1e6) {
        snprintf(out, PAGE_NUMBER_BYTES, "%.4gM", x * 1e-6);
    } else if (size >= 1e4) {
        snprintf(out, PAGE_NUMBER_BYTES, "%.4gk", x * 1e-3);
    } else {
        snprintf(out, PAGE_NUMBER_BYTES, "%.4g", x);
    }
    return out;
}

const char *page_count(uint64_t x, char out[PAGE_NUMBER_BYTES])
{
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%" PRIu64, x);
    int to = 0;

    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            memcpy(out + to, "\xe2\x80\xaf", 3); /* a narrow space */
            to += 3;
        }
        out[to++] = digits[i];
    }
    out[to] = '\0';
    return out;
}

const char *page_date(int64_t seconds, char out[PAGE_NUMBER_BYTES])
{
    time_t t = (time_t)seconds;
    struct tm tm;

    out[0] = '\0';
    if (gmtime_r(&t, &tm)) {
        (void)strftime(out, PAGE_NUMBER_BYTES, "%Y-%m-%d", &tm);
    }
    return out;
}

const char *page_at(double x, char out[PAGE_NUMBER_BYTES])
{
    size_t n;

    snprintf(out, PAGE_NUMBER_BYTES, "%.1f", x);
    n = strlen(out);
    if (n > 2 && out[n - 1] == '0' && out[n - 2] == '.') {
        out[n - 2] = '\0';
    }
    return out;
}
