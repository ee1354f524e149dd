/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_words.c - the words of findings: people look for names, not for
 * numbers of enums and indices of units.
 */
#include "judge/compare/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool finding_note(struct finding *f, struct finding at, const char *format, ...)
{
    va_list list;

    *f = at;
    f->form = FINDING_TEXT;
    va_start(list, format);
    (void)vsnprintf(f->note, sizeof(f->note), format, list);
    va_end(list);
    return false;
}

static const char *or_unknown(const char *name)
{
    return name ? name : "unknown";
}

const char *compare_parameter_name(const struct expect *e, uint64_t parameter)
{
    return parameter < e->model->n_parameters
               ? e->model->parameter_name[parameter]
               : "a parameter that the model lacks";
}

static void unit_words(const struct expect *e, uint32_t unit,
                       char out[COMPARE_WORDS_BYTES])
{
    const char *name = expect_unit_name(e, unit);

    if (unit == FSDP_NO_UNIT) {
        (void)snprintf(out, COMPARE_WORDS_BYTES, "no unit");
        return;
    }
    if (name) {
        (void)snprintf(out, COMPARE_WORDS_BYTES, "unit %.28s", name);
    } else {
        (void)snprintf(out, COMPARE_WORDS_BYTES, "unknown unit %" PRIu32, unit);
    }
}

void compare_collective_words(const struct expect *e,
                              const struct record_collective *c,
                              char out[COMPARE_WORDS_BYTES])
{
    const char *kind = or_unknown(record_collective_name(c->kind));
    char unit[COMPARE_WORDS_BYTES];

    unit_words(e, c->unit, unit);
    (void)snprintf(out, COMPARE_WORDS_BYTES, "%s %.16s of %.40s",
                   strchr("au", kind[0]) ? "an" : "a", kind, unit);
}

bool finding_collective(const struct expect *e, struct finding *f,
                        struct finding at, const struct record_collective *c,
                        uint32_t index, const struct compare_wording *wording)
{
    char words[COMPARE_WORDS_BYTES];

    compare_collective_words(e, c, words);
    at.unit = c->unit == FSDP_NO_UNIT ? -1 : (int64_t)c->unit;
    return finding_note(
        f, at, "collective %" PRIu32 " of the step, %s, %s %s, expected %s",
        index + 1, words, wording->verb, or_unknown(wording->got),
        or_unknown(wording->want));
}

/* Appends if all of it fits. */
static void append(char *note, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *note, size_t bytes, const char *format, ...)
{
    size_t used = strlen(note);
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(note + used, bytes - used, format, list);
    va_end(list);
    if (n < 0 || (size_t)n >= bytes - used) {
        note[used] = '\0';
    }
}

bool finding_peak(struct finding *f, struct finding at, uint64_t got,
                  uint64_t want, const char *note,
                  const struct record_memory *memory)
{
    static const struct {
        uint32_t kind;
        const char *name;
    } kinds[] = {{FSDP_PARAM_SHARD, "parameter shards"},
                 {FSDP_PARAM_FULL, "unsharded"},
                 {FSDP_GRAD_SHARD, "gradient shards"},
                 {FSDP_GRAD_FULL, "unsharded gradients"},
                 {FSDP_OPTIM, "states"},
                 {FSDP_STAGING, "staging"}};

    (void)finding_bytes(f, at, got, want, note);
    append(f->note, sizeof(f->note), "; peaks alone:");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        append(f->note, sizeof(f->note), "%s %s %" PRIu64, i > 0 ? "," : "",
               kinds[i].name, memory->peak[kinds[i].kind]);
    }
    append(f->note, sizeof(f->note), " bytes");
    return false;
}

/* The whole number that x is, but for rounding; 0: none. */
static int32_t simple_factor(double x)
{
    double n = round(x);

    return fabs(x) <= 1024.5 && fabs(n) >= 1.0 && fabs(x - n) <= 1e-5 * fabs(n)
               ? (int32_t)n
               : 0;
}

bool compare_factor_words(double got, double want,
                          char out[COMPARE_WORDS_BYTES])
{
    int32_t times = simple_factor(got / want);
    int32_t over = simple_factor(want / got);

    if (times == 1 || over == 1 || (times == 0 && over == 0)) {
        return false;
    }
    if (times != 0) {
        (void)snprintf(out, COMPARE_WORDS_BYTES, "got is want times %" PRId32,
                       times);
    } else {
        (void)snprintf(out, COMPARE_WORDS_BYTES,
                       "got is want divided by %" PRId32, over);
    }
    return true;
}
