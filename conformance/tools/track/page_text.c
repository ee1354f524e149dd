/* SPDX-License-Identifier: Apache-2.0 */
/* page_text.c - words and numbers of the page. */
#include "tools/track/page_text.h"

#include "judge/report/markup.h"
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

static void escape(FILE *f, const char *text, bool name)
{
    for (; *text != '\0'; text++) {
        markup_put(f,
                   (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
        if (name && *text == '.') {
            (void)fputs("<wbr>", f);
        }
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
    (void)snprintf(out, PAGE_NUMBER_BYTES, "%.4g %s", bytes, unit[i]);
    return out;
}

const char *page_number(double x, char out[PAGE_NUMBER_BYTES])
{
    double size = fabs(x);

    if (size >= 1e9) {
        (void)snprintf(out, PAGE_NUMBER_BYTES, "%.4gG", x * 1e-9);
    } else if (size >= 1e6) {
        (void)snprintf(out, PAGE_NUMBER_BYTES, "%.4gM", x * 1e-6);
    } else if (size >= 1e4) {
        (void)snprintf(out, PAGE_NUMBER_BYTES, "%.4gk", x * 1e-3);
    } else {
        (void)snprintf(out, PAGE_NUMBER_BYTES, "%.4g", x);
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
    if (gmtime_r(&t, &tm) != NULL) {
        (void)strftime(out, PAGE_NUMBER_BYTES, "%Y-%m-%d", &tm);
    }
    return out;
}

const char *page_at(double x, char out[PAGE_NUMBER_BYTES])
{
    size_t n;

    (void)snprintf(out, PAGE_NUMBER_BYTES, "%.1f", x);
    n = strlen(out);
    if (n > 2 && out[n - 1] == '0' && out[n - 2] == '.') {
        out[n - 2] = '\0';
    }
    return out;
}
