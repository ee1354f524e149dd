/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_sizes.c - makes calls whose struct is that of an older caller, which
 * lacks the last fields, or of a newer one, which has more behind them. An
 * engine must refuse none for that, read no field that an older caller lacks,
 * and nothing behind the last field. An answer is added only if a call was
 * refused, or had another result.
 */
#include "run/play/play.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    MORE = DRIVE_MORE
};

static int note_answer(struct driver *x, bool good, const char *name)
{
    *x->env.error = (struct fsdp_error){0};
    return good ? FSDP_OK : drive_answer_number(x, name, 0);
}

/* Calls clip to measure the norm alone. */
static bool measures(struct driver *x, const struct fsdp_clip *clip, float want)
{
    float norm = NAN;

    return x->engine.clip_grad_norm(x->sharded, clip, &norm) == FSDP_OK &&
           memcmp(&norm, &want, sizeof(norm)) == 0;
}

int play_clip_sizes(struct driver *x)
{
    const struct fsdp_clip whole = {
        .size = sizeof(whole), .max_norm = INFINITY, .p = 2.0f};
    struct fsdp_clip older = whole;
    struct {
        struct fsdp_clip known;
        unsigned char more[MORE];
    } newer = {.known = whole};
    float want = NAN;

    if (x->d->c->scenario != CASE_CLIP || !x->engine.clip_grad_norm) {
        return FSDP_OK;
    }
    FSDP_TRY(x->engine.clip_grad_norm(x->sharded, &whole, &want));
    older.size = offsetof(struct fsdp_clip, inverse_scale);
    older.inverse_scale = -1.0f; /* no number that a caller may give */
    newer.known.size = sizeof(newer);
    memset(newer.more, 0xff, sizeof(newer.more));
    FSDP_TRY(note_answer(x, measures(x, &older, want), "size-clip-older"));
    return note_answer(x, measures(x, &newer.known, want), "size-clip-newer");
}

static bool is_refused(int status)
{
    return status == FSDP_ERR_INVALID || status == FSDP_ERR_UNSUPPORTED;
}

/* ---- step ---------------------------------------------------------------- */

static int newer_step(struct driver *x, struct fsdp_step *step)
{
    struct {
        struct fsdp_step known;
        unsigned char more[MORE];
    } newer = {.known = *step};
    int status;

    newer.known.size = sizeof(newer);
    memset(newer.more, 0xff, sizeof(newer.more));
    status = x->engine.step(x->sharded, &newer.known);
    step->found_inf = newer.known.found_inf;
    return status;
}

/* struct fsdp_step has never grown, so there is no older one. If the size is
 * refused, the usual one is given instead. */
int play_step_sizes(struct driver *x, struct fsdp_step *step)
{
    const int status = newer_step(x, step);

    if (!is_refused(status)) {
        return status;
    }
    FSDP_TRY(note_answer(x, false, "size-step-newer"));
    return x->engine.step(x->sharded, step);
}

/* ---- shard --------------------------------------------------------------- */

/* Numbers that are no valid dtype, unit or factor. */
static const uint32_t *odd_numbers(struct driver *x)
{
    for (uint32_t i = 0; i < DRIVE_ODD; i++) {
        x->sized.odd[i] = UINT32_C(0xbf800000); /* -1, as a float */
    }
    return x->sized.odd;
}

/* Makes options from before mixed precision, when grad_dtype was padding. */
static void age_options(struct driver *x, struct fsdp_options *o)
{
    const float *const odd = (const float *)(const void *)odd_numbers(x);

    if (o->grad_dtype != 0 || o->accumulate_dtype != 0 || o->sum_dtype != 0 ||
        o->predivide_factor != 0.0f || o->beta1_of_group || o->beta2_of_group ||
        o->eps_of_group || o->momentum_of_group) {
        return;
    }
    o->size = offsetof(struct fsdp_options, accumulate_dtype);
    o->grad_dtype = o->accumulate_dtype = o->sum_dtype = x->sized.odd[0];
    o->predivide_factor = -1.0f;
    o->beta1_of_group = o->beta2_of_group = odd;
    o->eps_of_group = o->momentum_of_group = odd;
}

static void age_units(struct driver *x, struct fsdp_units *u)
{
    const uint32_t *const odd = odd_numbers(x);

    if (u->grad_dtype || u->accumulate_dtype || u->sum_dtype ||
        u->predivide_factor || u->unit_of_parameter || u->n_units > DRIVE_ODD ||
        x->told.n_parameters > DRIVE_ODD) {
        return;
    }
    u->size = offsetof(struct fsdp_units, grad_dtype);
    u->grad_dtype = u->accumulate_dtype = u->sum_dtype = odd;
    u->predivide_factor = (const float *)(const void *)odd;
    u->unit_of_parameter = odd;
}

static int never_asked(void *context, uint32_t b, uint64_t first, uint64_t n,
                       void *out)
{
    (void)context;
    (void)b;
    (void)first;
    (void)n;
    (void)out;
    return FSDP_ERR_INVALID;
}

static void age_model(struct fsdp_model *m)
{
    if (m->n_buffers == 0 && !m->initial_buffer) {
        m->size = offsetof(struct fsdp_model, initial_buffer);
        m->initial_buffer = never_asked;
    }
}

static int shard(struct driver *x, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options)
{
    return x->engine.shard(&x->env, model, units, options, &x->sharded);
}

/* Makes model, units and options of other sizes; model and units are kept for
 * the whole life. */
static void take_sizes(struct driver *x, bool older,
                       struct fsdp_options *options, uint32_t bytes)
{
    struct drive_sized *const s = &x->sized;

    memset(s->more_model, 0xff, sizeof(s->more_model));
    memset(s->more_units, 0xff, sizeof(s->more_units));
    s->model = x->told;
    s->units = *x->units;
    if (older) {
        age_model(&s->model);
        age_units(x, &s->units);
        age_options(x, options);
    } else {
        s->model.size = sizeof(s->model) + sizeof(s->more_model);
        s->units.size = sizeof(s->units) + sizeof(s->more_units);
        options->size = bytes;
    }
}

/* If the call is refused, one struct after the other gets its usual size, until
 * it is not. */
int play_shard_sizes(struct driver *x, const struct fsdp_options *options)
{
    static const char *const name[2][3] = {
        {"size-options-newer", "size-units-newer", "size-model-newer"},
        {"size-options-older", "size-units-older", "size-model-older"}};
    const bool older = x->d->c->scenario == CASE_CLIP;
    struct {
        struct fsdp_options known;
        unsigned char more[MORE];
    } o = {.known = *options};
    uint32_t usual = 0;
    int status;

    memset(o.more, 0xff, sizeof(o.more));
    take_sizes(x, older, &o.known, sizeof(o));
    status = shard(x, &x->sized.model, &x->sized.units, &o.known);
    while (is_refused(status) && usual < 3) {
        *x->env.error = (struct fsdp_error){0};
        x->sharded = NULL;
        usual++;
        status = shard(x, usual > 2 ? &x->told : &x->sized.model,
                       usual > 1 ? x->units : &x->sized.units, options);
    }
    if (status == FSDP_OK && usual > 0) {
        FSDP_TRY(note_answer(x, false, name[older][usual - 1]));
    }
    return status;
}

/* ---- What is asked for in other structs ---------------------------------- */

/* A struct of another size was refused, so the result with the usual size
 * counts. */
static int other_than(struct driver *x, int usual, const char *name)
{
    return usual != FSDP_OK ? usual : note_answer(x, false, name);
}

int play_save_sizes(struct driver *x, const struct fsdp_save *save)
{
    const bool older = save->what == 0 && save->dtype == 0;
    struct {
        struct fsdp_save known;
        unsigned char more[MORE];
    } other = {.known = *save};
    int status;

    if (x->serial) {
        return x->engine.save_begin(x->sharded, save);
    }
    memset(other.more, 0xff, sizeof(other.more));
    other.known.size =
        older ? offsetof(struct fsdp_save, what) : (uint32_t)sizeof(other);
    other.known.what = older ? UINT32_MAX : save->what;
    other.known.dtype = older ? UINT32_MAX : save->dtype;
    status = x->engine.save_begin(x->sharded, &other.known);
    if (!is_refused(status)) {
        return status;
    }
    *x->env.error = (struct fsdp_error){0};
    return other_than(x, x->engine.save_begin(x->sharded, save),
                      older ? "size-save-older" : "size-save-newer");
}

/* Calls FUNCTION of the engine, which has it, with a newer STRUCT. */
#define NEWER(FUNCTION, STRUCT, NAME)                                       \
    int play_##FUNCTION##_sizes(struct driver *x, const struct STRUCT *how) \
    {                                                                       \
        struct {                                                            \
            struct STRUCT known;                                            \
            unsigned char more[MORE];                                       \
        } newer = {.known = *how};                                          \
        int status;                                                         \
                                                                            \
        newer.known.size = sizeof(newer);                                   \
        memset(newer.more, 0xff, sizeof(newer.more));                       \
        status = x->engine.FUNCTION(x->sharded, &newer.known);              \
        if (!is_refused(status)) {                                          \
            return status;                                                  \
        }                                                                   \
        *x->env.error = (struct fsdp_error){0};                             \
        return other_than(x, x->engine.FUNCTION(x->sharded, how), NAME);    \
    }

NEWER(load_from, fsdp_load, "size-load-newer")
NEWER(summon, fsdp_summon, "size-summon-newer")
NEWER(send_values, fsdp_values, "size-values-newer")
