/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_id.c - the id of a drawn script, and the script of an id.
 */
#include "script/script_mask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes a digit for each kept action, without the zeros at the end. */
static void less_text(const struct script_mask *mask,
                      char text[SCRIPT_MOST_DRAWN + 2])
{
    static const char digits[] = "0123456789abcdef";
    uint32_t n = 0;

    text[n++] = '-';
    for (uint32_t i = 0; i < SCRIPT_MOST_DRAWN; i++) {
        if ((mask->actions >> i & 1) != 0) {
            text[n++] = digits[mask->less[i] & 15];
        }
    }
    while (n > 0 && (text[n - 1] == '0' || text[n - 1] == '-')) {
        n--;
    }
    text[n] = '\0';
}

void script_id(uint64_t seed, const struct script *drawn,
               const struct script_mask *mask, char id[SCRIPT_ID_BYTES])
{
    char less[SCRIPT_MOST_DRAWN + 2];
    struct script_mask all;
    int n;

    n = snprintf(id, SCRIPT_ID_BYTES, "script.%" PRIu32 ".%" PRIu64,
                 drawn->generator, seed);
    script_mask_all(drawn, &all);
    if (!script_mask_same(mask, &all)) {
        less_text(mask, less);
        snprintf(id + n, SCRIPT_ID_BYTES - (size_t)n,
                 ".%" PRIx64 "-%" PRIx32 "%s", mask->actions, mask->plain,
                 less);
    }
}

/* Reads a number in this base at *at; false: there is none, or it is too
 * large. */
static bool number(const char **at, uint64_t base, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = *at;
    const char *digit;
    bool fits = true;

    *out = 0;
    while (*p && (digit = strchr(digits, *p)) &&
           (uint64_t)(digit - digits) < base) {
        uint64_t d = (uint64_t)(digit - digits);

        fits = fits && *out <= (UINT64_MAX - d) / base;
        *out = *out * base + d;
        p++;
    }
    fits = fits && p != *at;
    *at = p;
    return fits;
}

static bool skip(const char **at, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(*at, word, n) != 0) {
        return false;
    }
    *at += n;
    return true;
}

/* Reads what stands behind the seed, canonical or not. */
static bool read_mask(const char **at, struct script_mask *out)
{
    uint64_t plain;

    if (!skip(at, ".") || !number(at, 16, &out->actions) || !skip(at, "-") ||
        !number(at, 16, &plain) || plain >> SCRIPT_N_PLAIN != 0) {
        return false;
    }
    out->plain = (uint32_t)plain;
    memset(out->less, 0, sizeof(out->less));
    if (!skip(at, "-")) {
        return true;
    }
    for (uint32_t i = 0; i < SCRIPT_MOST_DRAWN && **at; i++) {
        char one[2] = {**at, '\0'};
        const char *p = one;
        uint64_t less;

        if ((out->actions >> i & 1) != 0) {
            if (!number(&p, 16, &less)) {
                return false;
            }
            out->less[i] = (uint8_t)less;
            ++*at;
        }
    }
    return true;
}

static int refuse_id(const char *id, const char *why, struct fsdp_error *error)
{
    *error = (struct fsdp_error){.status = FSDP_ERR_FORMAT, .where = "script"};
    snprintf(error->message, sizeof(error->message), "'%.40s': %.160s", id,
             why);
    return FSDP_ERR_FORMAT;
}

static int read_script(const char *id, const char *at, uint64_t seed,
                       const struct script *drawn, struct script *out,
                       struct script_mask *mask, struct fsdp_error *error)
{
    struct script_mask read;
    char canonical[SCRIPT_ID_BYTES];

    script_mask_all(drawn, &read);
    if (*at && (!read_mask(&at, &read) || *at)) {
        return refuse_id(id,
                         "behind the seed is .ACTIONS-PLAIN[-LESS], in "
                         "hexadecimal digits",
                         error);
    }
    FSDP_TRY(script_masked(drawn, &read, out, mask, error));
    script_id(seed, drawn, mask, canonical);
    if (strcmp(canonical, id) != 0) {
        char why[SCRIPT_ID_BYTES + 40];

        snprintf(why, sizeof(why), "what it keeps is that of %s", canonical);
        return refuse_id(id, why, error);
    }
    return FSDP_OK;
}

int script_of_id(const char *id, struct script *out, uint64_t *seed,
                 struct script_mask *mask, struct fsdp_error *error)
{
    const char *at = id;
    struct script drawn = {0};
    struct script_mask left;
    uint64_t generator;
    uint64_t from;
    int status;

    *out = (struct script){0};
    if (!skip(&at, "script.") || !number(&at, 10, &generator) ||
        !skip(&at, ".") || !number(&at, 10, &from)) {
        return refuse_id(id, "a drawn script is script.GENERATOR.SEED", error);
    }
    if (generator < SCRIPT_OLDEST_GENERATOR || generator > SCRIPT_GENERATOR) {
        char why[SCRIPT_ID_BYTES];

        snprintf(why, sizeof(why),
                 "generator %" PRIu64 " drew it, and %d to %d draw here: "
                 "give the script's text",
                 generator, SCRIPT_OLDEST_GENERATOR, SCRIPT_GENERATOR);
        return refuse_id(id, why, error);
    }
    status = script_draw_by((uint32_t)generator, from, &drawn, error);
    if (status == FSDP_OK) {
        status =
            read_script(id, at, from, &drawn, out, mask ? mask : &left, error);
    }
    if (seed) {
        *seed = from;
    }
    script_release(&drawn);
    return status;
}
