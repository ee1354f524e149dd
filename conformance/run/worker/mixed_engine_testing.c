/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_engine_testing.c - the model, and the loop by hand.
 */
#include "run/worker/mixed_engine_testing.h"

#include <math.h>
#include <string.h>

/* ---- The model --------------------------------------------------------- */

const uint32_t mixed_numel[] = {15, 3, 4, 8, 7};
const uint32_t mixed_module[] = {0, 0, 1, 1, 2};

static const char *const modules[] = {"", "b", "c"};
static const char *const names[] = {"w", "x", "b.w", "b.x", "c.w"};
static const uint64_t shapes[][FSDP_MAX_DIMS] = {
    {5, 3}, {3}, {4}, {2, 2, 2}, {7}};
static const uint32_t n_dims[] = {2, 1, 1, 3, 1};
static const uint32_t f32s[] = {FSDP_DTYPE_F32, FSDP_DTYPE_F32, FSDP_DTYPE_F32,
                                FSDP_DTYPE_F32, FSDP_DTYPE_F32};
static const uint32_t zeros[MIXED_PARAMETERS] = {0};
static const int32_t parents[] = {-1, 0, 0};
static const int32_t none[] = {-1, -1, -1, -1, -1};
static const uint32_t points[] = {
    FSDP_PRE_FORWARD,   FSDP_POST_FORWARD,  FSDP_PRE_FORWARD,
    FSDP_POST_FORWARD,  FSDP_PRE_FORWARD,   FSDP_POST_FORWARD,
    FSDP_PRE_BACKWARD,  FSDP_POST_BACKWARD, FSDP_PRE_BACKWARD,
    FSDP_POST_BACKWARD, FSDP_PRE_BACKWARD,  FSDP_POST_BACKWARD};
static const uint32_t point_modules[] = {0, 0, 1, 1, 2, 2, 2, 2, 1, 1, 0, 0};
static const struct fsdp_sequence train = {sizeof(train), 12, "train", points,
                                           point_modules};
static const struct fsdp_sequence *const sequences[] = {&train};

/* A number between -4 and 4 that uses all bits. */
static float draw(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t x = a * 0x9e3779b9u ^ b * 0x85ebca6bu ^ c * 0xc2b2ae35u;

    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x = (x ^ x >> 12) * 0x297a2d39u;
    x ^= x >> 15;
    return (float)(int32_t)x * 0x1p-29f;
}

static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    float *to = out;

    (void)context;
    for (uint64_t i = 0; i < n; i++) {
        to[i] = draw(1000 + p, (uint32_t)(first + i), 7);
    }
    return FSDP_OK;
}

const struct fsdp_model mixed_model = {.size = sizeof(mixed_model),
                                       .n_modules = MIXED_UNITS,
                                       .n_parameters = MIXED_PARAMETERS,
                                       .n_sequences = 1,
                                       .module_name = modules,
                                       .module_class = modules,
                                       .module_parent = parents,
                                       .parameter_name = names,
                                       .parameter_module = mixed_module,
                                       .parameter_shape = shapes,
                                       .parameter_n_dims = n_dims,
                                       .parameter_dtype = f32s,
                                       .parameter_flags = zeros,
                                       .parameter_alias = none,
                                       .sequence = sequences,
                                       .initial = initial};

/* ---- Options ----------------------------------------------------------- */

static const uint32_t groups[MIXED_PARAMETERS] = {0, 1, 1, 1, 0};
static const float beta1[MIXED_GROUPS] = {0.9f, 0.8f, 0.0f};
static const float beta2[MIXED_GROUPS] = {0.99f, 0.95f, 0.0f};
static const float eps[MIXED_GROUPS] = {1e-3f, 1e-2f, 0.0f};
static const float momentum[MIXED_GROUPS] = {0.9f, 0.5f, 0.0f};

void mixed_options_make(const struct mixed_case *c, struct mixed_options *out)
{
    static const uint32_t unit_of_module[] = {0, 1, 2};
    const struct mixed_policy *p = c->policy;
    uint32_t ahead = c->strict ? 0 : 2;

    memset(out, 0, sizeof(*out));
    out->units = (struct fsdp_units){.size = sizeof(out->units),
                                     .n_units = MIXED_UNITS,
                                     .unit_of_module = unit_of_module};
    out->options = (struct fsdp_options){.size = sizeof(out->options),
                                         .layout = c->layout,
                                         .reshard_after_forward = 1,
                                         .optimizer = c->optimizer,
                                         .n_groups = MIXED_GROUPS,
                                         .group_of_parameter = groups,
                                         .momentum = 0.25f,
                                         .beta1 = 0.5f,
                                         .beta2 = 0.75f,
                                         .eps = 0.1f,
                                         .predivide_factor = c->predivide,
                                         .divide_factor = c->divide,
                                         .prefetch_forward = ahead,
                                         .prefetch_backward = ahead,
                                         .reduces_in_flight = ahead};
    if (c->optimizer != FSDP_OPTIMIZER_SGD) {
        out->options.beta1_of_group = beta1;
        out->options.beta2_of_group = beta2;
        out->options.eps_of_group = eps;
        out->options.momentum_of_group = momentum;
    }
    if (!c->own) {
        out->options.param_dtype = p->param;
        out->options.grad_dtype = p->grad;
        out->options.accumulate_dtype = p->accumulate;
        out->options.reduce_dtype = p->reduce;
        out->options.sum_dtype = p->sum;
        return;
    }
    for (uint32_t u = 0; u < MIXED_UNITS; u++) {
        out->own[0][u] = p[u].param;
        out->own[1][u] = p[u].grad;
        out->own[2][u] = p[u].accumulate;
        out->own[3][u] = p[u].reduce;
        out->own[4][u] = p[u].sum;
    }
    out->units.param_dtype = out->own[0];
    out->units.grad_dtype = out->own[1];
    out->units.accumulate_dtype = out->own[2];
    out->units.reduce_dtype = out->own[3];
    out->units.sum_dtype = out->own[4];
}

/* ---- Training by hand -------------------------------------------------- */

float mixed_gradient(const struct mixed_case *c, const struct mixed_when *when,
                     uint32_t rank, uint32_t p, uint32_t i)
{
    float g = draw(when->step * 8 + when->microbatch, rank * 8 + p, i + 1);
    bool last = rank + 1 == c->extent[0] * c->extent[1] &&
                p + 1 == MIXED_PARAMETERS && i + 1 == mixed_numel[p];

    if (c->overflows && when->step == 1 && last) {
        return INFINITY;
    }
    return c->scale != 0.0f ? g * c->scale : g;
}

bool mixed_has_gradient(uint32_t p, uint32_t rank)
{
    return p != 1 || rank == 0;
}

void mixed_truth_make(struct mixed_truth *t)
{
    memset(t, 0, sizeof(*t));
    for (uint32_t k = 0; k < MIXED_GROUPS; k++) {
        t->power[k][0] = t->power[k][1] = 1.0f;
    }
    for (uint32_t p = 0; p < MIXED_PARAMETERS; p++) {
        (void)initial(NULL, p, 0, mixed_numel[p], t->weight[p]);
    }
}

/* The microbatches of a step that meet in one reduction. */
struct span {
    uint32_t step, first, last;
};

/* One rank's sum of an element over these microbatches, as it is sent. */
static float local_sum(const struct mixed_case *c, const struct span *of,
                       uint32_t rank, uint32_t p, uint32_t i)
{
    const struct mixed_policy *d = &c->policy[mixed_module[p]];
    float sum = 0.0f;

    if (!mixed_has_gradient(p, rank)) {
        return 0.0f;
    }
    for (uint32_t m = of->first; m <= of->last; m++) {
        const struct mixed_when when = {of->step, m};
        float g = fsdp_round(d->grad, mixed_gradient(c, &when, rank, p, i));

        sum = fsdp_round(d->accumulate, m == of->first ? g : sum + g);
    }
    if (c->predivide != 0.0f) {
        sum = fsdp_round(d->accumulate, sum * (1.0f / c->predivide));
    }
    return fsdp_round(d->reduce, sum);
}

/* The fold over ranks: those of a replica first, then replicas. */
static float reduced(const struct mixed_case *c, const struct span *of,
                     uint32_t p, uint32_t i)
{
    const struct mixed_policy *d = &c->policy[mixed_module[p]];
    uint32_t shards = c->extent[1];
    float divide =
        c->divide != 0.0f ? c->divide : (float)(c->extent[0] * shards);
    float factor = (c->predivide != 0.0f ? c->predivide : 1.0f) / divide;
    float all = 0.0f;

    for (uint32_t r = 0; r < c->extent[0]; r++) {
        float sum = 0.0f;

        for (uint32_t k = 0; k < shards; k++) {
            float x = local_sum(c, of, r * shards + k, p, i);
            sum = k == 0 ? x : fsdp_round(d->sum, sum + x);
        }
        sum = fsdp_round(d->reduce, sum);
        all = r == 0 ? sum : fsdp_round(d->sum, all + sum);
    }
    return fsdp_round(d->reduce, fsdp_round(d->reduce, all) * factor);
}

static float gradient_of(const struct mixed_case *c, uint32_t step, uint32_t p,
                         uint32_t i)
{
    struct span of = {step, 0, 0};
    float sum = 0.0f;
    bool first = true;

    for (uint32_t m = 0; m < c->microbatches; m++) {
        if (c->sync >> m & 1) {
            float x;

            of.last = m;
            x = reduced(c, &of, p, i);
            sum = first ? x : sum + x;
            first = false;
            of.first = m + 1;
        }
    }
    return sum;
}

static float adamw(struct mixed_truth *t, uint32_t p, uint32_t i, float w)
{
    const uint32_t k = groups[p];
    const float g = t->gradient[p][i];
    float *m = &t->moment[0][p][i];
    float *v = &t->moment[1][p][i];

    *m = fmaf(beta1[k], *m, (1.0f - beta1[k]) * g);
    *v = fmaf(beta2[k], *v, ((1.0f - beta2[k]) * g) * g);
    return fmaf(-(MIXED_LR / (1.0f - t->power[k][0])),
                *m / (sqrtf(*v) / sqrtf(1.0f - t->power[k][1]) + eps[k]), w);
}

static float stepped(struct mixed_truth *t, const struct mixed_case *c,
                     uint32_t p, uint32_t i)
{
    float *v = &t->moment[0][p][i];
    float g = t->gradient[p][i];
    float w = t->weight[p][i];

    if (c->optimizer == FSDP_OPTIMIZER_ADAMW) {
        return adamw(t, p, i, w);
    }
    if (c->optimizer == FSDP_OPTIMIZER_MOMENTUM) {
        *v = fmaf(momentum[groups[p]], *v, g);
        g = *v;
    }
    return fmaf(-MIXED_LR, g, w);
}

bool mixed_truth_step(struct mixed_truth *t, const struct mixed_case *c,
                      uint32_t step)
{
    bool finite = true;

    for (uint32_t p = 0; p < MIXED_PARAMETERS; p++) {
        for (uint32_t i = 0; i < mixed_numel[p]; i++) {
            t->gradient[p][i] = gradient_of(c, step, p, i);
            finite = finite && isfinite(t->gradient[p][i]);
        }
    }
    for (uint32_t k = 0; k < MIXED_GROUPS && finite; k++) {
        t->power[k][0] *= beta1[k];
        t->power[k][1] *= beta2[k];
    }
    for (uint32_t p = 0; p < MIXED_PARAMETERS; p++) {
        for (uint32_t i = 0; i < mixed_numel[p]; i++) {
            if (c->scale != 0.0f && (finite || c->clips)) {
                t->gradient[p][i] *= 1.0f / c->scale;
            }
            if (finite) {
                t->weight[p][i] = stepped(t, c, p, i);
            }
        }
    }
    return finite;
}

/* ---- Memory ------------------------------------------------------------ */

struct sizes {
    uint64_t numel, chunk, whole, padded;
};

static struct sizes sizes_of(const struct mixed_case *c, uint32_t u)
{
    uint64_t shards = c->extent[1];
    bool rows = c->layout == FSDP_LAYOUT_PER_PARAMETER && shards > 1;
    struct sizes x = {0, 0, 0, 0};

    for (uint32_t p = 0; p < MIXED_PARAMETERS; p++) {
        if (mixed_module[p] == u) {
            uint64_t d0 = shapes[p][0];

            x.numel += mixed_numel[p];
            x.chunk += (d0 + shards - 1) / shards * (mixed_numel[p] / d0);
        }
    }
    if (!rows) {
        x.chunk = (x.numel + shards - 1) / shards;
    }
    x.padded = x.chunk * shards;
    x.whole = rows ? x.numel : x.padded;
    return x;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether some gradients wait for a later microbatch. */
static bool waits(const struct mixed_case *c)
{
    return c->sync != (1u << c->microbatches) - 1;
}

/* Bytes of what arrives, of fresh gradients, and of what is sent with its
 * result. */
static uint64_t staging_of(const struct mixed_case *c, uint32_t rank,
                           uint32_t u)
{
    const struct mixed_policy *d = &c->policy[u];
    const struct sizes x = sizes_of(c, u);
    bool packs = c->layout == FSDP_LAYOUT_PER_PARAMETER && c->extent[1] > 1;
    bool again = c->sync & (c->sync - 1); /* more than one is reduced */
    uint64_t arrives = packs ? x.padded * fsdp_dtype_bytes(d->param) : 0;
    uint64_t lent = 0;
    uint64_t fresh =
        d->grad != d->accumulate || waits(c) ? fsdp_dtype_bytes(d->grad) : 0;
    uint64_t sent = packs || d->accumulate != d->reduce
                        ? x.padded * fsdp_dtype_bytes(d->reduce)
                        : 0;

    for (uint32_t p = 0; p < MIXED_PARAMETERS; p++) {
        if (mixed_module[p] == u && mixed_has_gradient(p, rank)) {
            lent += mixed_numel[p];
        }
    }
    if (d->reduce != FSDP_DTYPE_F32 || again) {
        sent += x.chunk * fsdp_dtype_bytes(d->reduce);
    }
    return larger(arrives, larger(lent * fresh, sent));
}

/* One unit is live at a time, but for gradients that wait for a later
 * microbatch. */
uint64_t mixed_peak(const struct mixed_case *c, uint32_t rank, uint32_t kind)
{
    uint64_t most = 0;
    uint64_t sum = 0;

    for (uint32_t u = 0; u < MIXED_UNITS; u++) {
        const struct sizes x = sizes_of(c, u);
        const struct mixed_policy *d = &c->policy[u];
        uint64_t bytes = 0;

        if (kind == FSDP_PARAM_FULL &&
            (c->extent[1] > 1 || d->param != FSDP_DTYPE_F32)) {
            bytes = x.whole * fsdp_dtype_bytes(d->param);
        } else if (kind == FSDP_GRAD_FULL) {
            bytes = x.whole * fsdp_dtype_bytes(d->accumulate);
        } else if (kind == FSDP_STAGING) {
            bytes = staging_of(c, rank, u);
        } else if (kind == FSDP_PARAM_SHARD || kind == FSDP_GRAD_SHARD) {
            bytes = x.chunk * sizeof(float);
        } else if (kind != FSDP_PARAM_FULL) {
            return MIXED_ANY;
        }
        most = larger(most, bytes);
        sum += bytes;
    }
    if (kind == FSDP_PARAM_SHARD || kind == FSDP_GRAD_SHARD ||
        (kind == FSDP_GRAD_FULL && waits(c))) {
        return sum;
    }
    return most;
}
