/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_shrink.c - delta debugging over the mask of a drawn script.
 *
 * Candidates are numbered: 2 halves, 4 quarters, 8, 16, 32, 64 parts of the
 * actions that are kept; then each bit of what each action says less; then each
 * plain choice. When a candidate is taken, the search goes on behind its
 * number; when all have been tried, it begins anew if any was taken.
 */
#include "script/script_shrink.h"

enum {
    PARTS = 2 + 4 + 8 + 16 + 32 + 64,
    LESS = SCRIPT_MOST_DRAWN * SCRIPT_LESS_BITS,
    CANDIDATES = PARTS + LESS + SCRIPT_N_PLAIN,
};

static uint32_t count(uint64_t bits)
{
    return (uint32_t)__builtin_popcountll(bits);
}

/* Removes part i of the kept actions, which are cut into `of` parts. */
static bool without_part(struct script_mask *m, uint32_t i, uint32_t of)
{
    const uint32_t n = count(m->actions);
    uint64_t left = 0;
    uint32_t k = 0;

    /* The finest parts are single actions, all others have two at least. */
    if (of > n && of / 2 >= n) {
        return false;
    }
    for (uint64_t bits = m->actions; bits != 0; bits &= bits - 1, k++) {
        uint32_t part = of >= n ? k : k * of / n;

        left |= part != i ? bits & -bits : 0;
    }
    if (left == 0 || left == m->actions) {
        return false;
    }
    m->actions = left;
    return true;
}

/* Makes change `number` of m; false: it changes nothing. */
static bool change(struct script_mask *m, uint32_t number)
{
    uint32_t of = 2;

    if (number < PARTS) {
        while (number >= of) {
            number -= of;
            of *= 2;
        }
        return without_part(m, number, of);
    }
    number -= PARTS;
    if (number < LESS) {
        const uint32_t i = number / SCRIPT_LESS_BITS;
        const uint32_t bit = 1u << number % SCRIPT_LESS_BITS;

        if ((m->actions >> i & 1) == 0 || (m->less[i] & bit) != 0) {
            return false;
        }
        m->less[i] = (uint8_t)(m->less[i] | bit);
        return true;
    }
    number -= LESS;
    if ((m->plain >> number & 1) != 0) {
        return false;
    }
    m->plain |= 1u << number;
    return true;
}

bool script_smaller(const struct script *drawn, const struct script_mask *m,
                    uint32_t *at, struct script_mask *out)
{
    while (*at < CANDIDATES) {
        struct script_mask wanted = *m;
        struct fsdp_error error;
        struct script s;
        bool fine;

        if (!change(&wanted, (*at)++)) {
            continue;
        }
        fine = script_masked(drawn, &wanted, &s, out, &error) == FSDP_OK;
        fine = fine && s.n_actions > 0 && !script_mask_same(out, m);
        script_release(&s);
        if (fine) {
            return true;
        }
    }
    return false;
}

int script_shrink(const struct script *drawn, struct script_shrink *how,
                  struct script_mask *mask, struct fsdp_error *error)
{
    struct script_mask smaller;
    bool taken = false;
    uint32_t at = 0;

    how->tried = 0;
    while (how->tried < how->most) {
        struct script s;
        int status;

        if (!script_smaller(drawn, mask, &at, &smaller)) {
            if (!taken) {
                return FSDP_OK;
            }
            taken = false;
            at = 0;
            continue;
        }
        status = script_masked(drawn, &smaller, &s, NULL, error);
        if (status == FSDP_OK && how->fails(how->context, &s)) {
            *mask = smaller;
            taken = true;
        }
        how->tried++;
        script_release(&s);
        FSDP_TRY(status);
    }
    return FSDP_OK;
}
