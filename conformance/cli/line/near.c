/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.c - the distance between two names: letters put in, left out, taken for
 * another, or exchanged with their neighbour.
 */
#include "cli/line/near.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST = 192 /* letters of a name; ids of cases have fewer */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Three rows of the table of distances are enough: an exchange of neighbours
 * looks two rows back. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t row[3][MOST + 1];

    for (size_t k = 0; k <= m; k++) {
        row[0][k] = k;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t *at = row[i % 3];
        const size_t *last = row[(i + 2) % 3];
        const size_t *before = row[(i + 1) % 3];

        at[0] = i;
        for (size_t k = 1; k <= m; k++) {
            at[k] = least(least(last[k], at[k - 1]) + 1,
                          last[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] &&
                a[i - 2] == b[k - 1]) {
                at[k] = least(at[k], before[k - 2] + 1);
            }
        }
    }
    return row[n % 3][m];
}

void near_try(struct near *n, const char *candidate)
{
    const size_t typed = strlen(n->wanted);
    const size_t length = strlen(candidate);
    size_t d;

    if (typed == 0 || typed > MOST || length > MOST) {
        return;
    }
    d = distance(n->wanted, typed, candidate, length);
    if (typed > 2 && length > typed &&
        strncmp(n->wanted, candidate, typed) == 0) {
        d = 1; /* only the beginning of the name was typed */
    }
    if (d <= 1 + typed / 6 && d < typed && (!n->best || d < n->distance)) {
        n->best = candidate;
        n->distance = d;
    }
}

const char *near_say(const struct near *n, char out[256])
{
    out[0] = '\0';
    if (n->best) {
        snprintf(out, 256, "; did you mean '%.200s'?", n->best);
    }
    return out;
}
