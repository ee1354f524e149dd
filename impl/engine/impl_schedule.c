/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_schedule.c - from a call sequence to actions. Windows come first
 * (impl_windows.c); then one walk over the points issues all-gathers, the
 * unit's own and those of the units that follow in the same phase, ends
 * windows, and lets reductions run on for as long as the options allow.
 */
#include "impl_windows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    const struct impl_schedule *x;
    struct impl_plan *plan;
    const struct impl_stop *stop; /* [n_stops] */
    uint32_t n_stops;
    const uint8_t *window; /* [n_stops]: IMPL_BEGINS, ... */
    uint32_t *full;        /* [n_units]: its life, or IMPL_NO_LIFE */
    uint32_t *grad;        /* [n_units]: its life, also while it is sent */
    uint32_t *arrived;     /* [n_units]: life of what is not unpacked yet */
    uint32_t *packed;      /* [n_units]: life of what is sent for grad */
    uint32_t *open;        /* [n_units]: in a window, or kept since one */
    uint32_t *reduced;     /* [n_units]: in this pass */
    uint32_t *sent;        /* units whose gradient is in flight, in order */
    uint32_t n_sent;
};

static void act(struct walk *w, uint32_t what, uint32_t unit, uint32_t life)
{
    w->plan->action[w->plan->n_actions++] =
        (struct impl_action){what, unit, life};
}

/* A life that begins now. */
static uint32_t begin_life(struct walk *w, struct impl_life *of, uint32_t *n,
                           uint64_t size)
{
    of[*n] = (struct impl_life){.size = size, .begin = w->plan->n_actions};
    return (*n)++;
}

static bool is_gathered(const struct walk *w, uint32_t u)
{
    return w->full[u] != IMPL_NO_LIFE || w->arrived[u] != IMPL_NO_LIFE;
}

static void gather(struct walk *w, uint32_t u)
{
    struct impl_plan *plan = w->plan;

    if (w->x->packs) {
        w->arrived[u] =
            begin_life(w, plan->wire, &plan->n_wire, w->x->extent[u].arrived);
        act(w, IMPL_GATHER, u, w->arrived[u]);
        return;
    }
    w->full[u] = begin_life(w, plan->full, &plan->n_full, w->x->extent[u].full);
    act(w, IMPL_GATHER, u, w->full[u]);
}

static void unpack(struct walk *w, uint32_t u)
{
    struct impl_plan *plan = w->plan;

    w->full[u] = begin_life(w, plan->full, &plan->n_full, w->x->extent[u].full);
    act(w, IMPL_UNPACK, u, w->full[u]);
    plan->wire[w->arrived[u]].end = plan->n_actions;
    w->arrived[u] = IMPL_NO_LIFE;
}

static void pack(struct walk *w, uint32_t u)
{
    struct impl_plan *plan = w->plan;

    w->packed[u] =
        begin_life(w, plan->wire, &plan->n_wire, w->x->extent[u].packed);
    act(w, IMPL_PACK, u, w->packed[u]);
    plan->grad[w->grad[u]].end = plan->n_actions;
    w->grad[u] = IMPL_NO_LIFE;
}

/* The units whose windows come next in this phase. One that is kept since an
 * earlier phase is not counted; one that was gathered ahead before is. */
static void gather_ahead(struct walk *w, uint32_t at)
{
    uint32_t backward = w->window[at] & IMPL_BACKWARD;
    uint32_t depth = backward ? w->x->options->prefetch_backward
                              : w->x->options->prefetch_forward;

    for (uint32_t i = at + 1; depth > 0 && i < w->n_stops &&
                              (w->window[i] & IMPL_BACKWARD) == backward;
         i++) {
        uint32_t u = w->stop[i].unit;
        if ((w->window[i] & IMPL_BEGINS) && !w->open[u]) {
            if (!is_gathered(w, u)) {
                gather(w, u);
            }
            depth--;
        }
    }
}

/* The life of the copy of unit u's gradient that is sent. */
static struct impl_life *sent_life(struct walk *w, uint32_t u)
{
    return w->packed[u] != IMPL_NO_LIFE ? &w->plan->wire[w->packed[u]]
                                        : &w->plan->grad[w->grad[u]];
}

static void retire(struct walk *w)
{
    uint32_t u = w->sent[0];

    act(w, IMPL_RETIRE, u, w->packed[u]);
    sent_life(w, u)->end = w->plan->n_actions;
    w->grad[u] = w->packed[u] = IMPL_NO_LIFE;
    w->n_sent--;
    memmove(w->sent, w->sent + 1, w->n_sent * sizeof(*w->sent));
}

static void begin_window(struct walk *w, uint32_t at)
{
    struct impl_plan *plan = w->plan;
    uint32_t u = w->stop[at].unit;

    w->open[u] = 1;
    if (w->x->extent[u].unshards && !is_gathered(w, u)) {
        gather(w, u);
    }
    if (w->x->gathers) {
        gather_ahead(w, at);
    }
    act(w, IMPL_OPEN, u, IMPL_NO_LIFE);
    if (w->arrived[u] != IMPL_NO_LIFE) {
        unpack(w, u);
    }
    if (!(w->window[at] & IMPL_BACKWARD) || w->x->extent[u].frozen) {
        return;
    }
    plan->has_backward = true;
    /* The unit's last gradient is still being sent. */
    while (w->grad[u] != IMPL_NO_LIFE || w->packed[u] != IMPL_NO_LIFE) {
        retire(w);
    }
    w->grad[u] = begin_life(w, plan->grad, &plan->n_grad, w->x->extent[u].grad);
    act(w, IMPL_GRADIENT, u, w->grad[u]);
}

/* Room for one more reduction in flight is made before it is issued, so that
 * compute waits for older ones alone. */
static void end_window(struct walk *w, uint32_t at)
{
    struct impl_plan *plan = w->plan;
    uint32_t u = w->stop[at].unit;
    uint32_t most = w->x->options->reduces_in_flight;

    act(w, IMPL_RESHARD, u, w->full[u]);
    w->open[u] = 0;
    if (w->x->extent[u].unshards) {
        plan->full[w->full[u]].end = plan->n_actions;
        w->full[u] = IMPL_NO_LIFE;
    }
    if (!(w->window[at] & IMPL_BACKWARD) || w->x->extent[u].frozen) {
        return;
    }
    if (most > 0 && w->n_sent == most) {
        retire(w);
    }
    if (w->x->extent[u].repacks) {
        pack(w, u);
    }
    plan->reduces_again = plan->reduces_again || w->reduced[u];
    w->reduced[u] = 1;
    plan->sum[plan->n_sum] =
        (struct impl_life){.size = w->x->extent[u].sum,
                           .begin = 2 * w->stop[at].point + 1,
                           .end = 2 * w->stop[at].point + 2};
    act(w, IMPL_REDUCE, u, plan->n_sum++);
    w->sent[w->n_sent++] = u;
    if (most == 0) {
        retire(w);
    }
}

/* Fresh gradients live from a PRE_BACKWARD to the next POST_BACKWARD of the
 * same module. */
static int find_fresh(struct walk *w, const char **what)
{
    struct impl_plan *plan = w->plan;
    const struct fsdp_sequence *q = plan->sequence;
    uint32_t n_modules = w->x->model->n_modules;
    uint32_t *open = malloc((n_modules + (size_t)1) * sizeof(*open));
    bool *had = calloc(n_modules + (size_t)1, sizeof(*had));
    int status = open && had ? FSDP_OK : FSDP_ERR_NOMEM;

    for (uint32_t m = 0; open && m < n_modules; m++) {
        open[m] = IMPL_NO_LIFE;
    }
    for (uint32_t i = 0; i < q->n && status == FSDP_OK; i++) {
        uint32_t m = q->module[i];
        if (q->point[i] == FSDP_PRE_BACKWARD && open[m] == IMPL_NO_LIFE) {
            plan->accumulates = plan->accumulates || had[m];
            had[m] = true;
            open[m] = plan->n_fresh++;
            plan->fresh_of_point[i] = open[m];
            plan->fresh_module[open[m]] = m;
            plan->fresh[open[m]] = (struct impl_life){.begin = 2 * i};
        } else if (q->point[i] == FSDP_POST_BACKWARD &&
                   open[m] != IMPL_NO_LIFE) {
            plan->fresh[open[m]].end = 2 * i + 1;
            open[m] = IMPL_NO_LIFE;
        } else if (q->point[i] == FSDP_PRE_BACKWARD ||
                   q->point[i] == FSDP_POST_BACKWARD) {
            *what = "a module's backward begins and ends in turn";
            status = FSDP_ERR_INVALID;
        }
    }
    for (uint32_t m = 0; m < n_modules && status == FSDP_OK; m++) {
        if (open[m] != IMPL_NO_LIFE) {
            *what = "a module's backward never ends";
            status = FSDP_ERR_INVALID;
        }
    }
    free(open);
    free(had);
    return status;
}

static void walk(struct walk *w)
{
    struct impl_plan *plan = w->plan;
    uint32_t k = 0;

    for (uint32_t u = 0; u < w->x->units->n_units; u++) {
        w->full[u] = w->grad[u] = IMPL_NO_LIFE;
        w->arrived[u] = w->packed[u] = IMPL_NO_LIFE;
        w->open[u] = w->reduced[u] = 0;
    }
    for (uint32_t i = 0; i < plan->sequence->n; i++) {
        plan->first[i] = plan->n_actions;
        for (; k < w->n_stops && w->stop[k].point == i; k++) {
            if (w->window[k] & IMPL_BEGINS) {
                begin_window(w, k);
            } else if (w->window[k] & IMPL_ENDS) {
                end_window(w, k);
            }
        }
    }
    plan->first[plan->sequence->n] = plan->n_actions;
    for (; w->n_sent > 0; w->n_sent--) { /* until the next pass begins */
        sent_life(w, w->sent[w->n_sent - 1])->end = plan->n_actions + 1;
    }
}

/* At most nine actions, one of each life, two of those on the wire, and two
 * stops a window. A point has one stop at least. */
static int make_arrays(struct impl_plan *p, uint32_t n_stops)
{
    size_t n = n_stops + (size_t)1;

    p->action = calloc(5 * n, sizeof(*p->action));
    p->first = calloc(n, sizeof(*p->first));
    p->full = calloc(n, sizeof(*p->full));
    p->grad = calloc(n, sizeof(*p->grad));
    p->wire = calloc(n, sizeof(*p->wire));
    p->fresh = calloc(n, sizeof(*p->fresh));
    p->sum = calloc(n, sizeof(*p->sum));
    p->fresh_module = calloc(n, sizeof(*p->fresh_module));
    p->fresh_of_point = calloc(n, sizeof(*p->fresh_of_point));
    return p->action && p->first && p->full && p->grad && p->wire && p->fresh &&
                   p->sum && p->fresh_module && p->fresh_of_point
               ? FSDP_OK
               : FSDP_ERR_NOMEM;
}

int impl_plan_make(const struct impl_schedule *x,
                   const struct fsdp_sequence *sequence, struct impl_plan *out,
                   const char **what)
{
    size_t n = x->units->n_units + (size_t)1;
    uint32_t *scratch = calloc(7 * n, sizeof(*scratch));
    struct impl_stop *stop;
    uint8_t *window;
    struct walk w = {.x = x,
                     .plan = out,
                     .full = scratch,
                     .grad = scratch + n,
                     .open = scratch + 2 * n,
                     .reduced = scratch + 3 * n,
                     .sent = scratch + 4 * n,
                     .arrived = scratch + 5 * n,
                     .packed = scratch + 6 * n};
    int status = impl_stops(x, sequence, &stop, &w.n_stops, what);

    *out = (struct impl_plan){.sequence = sequence};
    window = calloc(w.n_stops + (size_t)1, 1);
    w.stop = stop;
    w.window = window;
    if (status == FSDP_OK) {
        status =
            window && scratch ? make_arrays(out, w.n_stops) : FSDP_ERR_NOMEM;
    }
    if (status == FSDP_OK) {
        status =
            impl_windows(x, sequence, stop, w.n_stops, window, scratch, what);
    }
    if (status == FSDP_OK) {
        status = find_fresh(&w, what);
    }
    if (status == FSDP_OK) {
        walk(&w);
        /* make_arrays has said so. */
        assert(out->n_actions <= 5 * (w.n_stops + 1));
        assert(out->n_fresh + out->n_sum <= w.n_stops + 1);
        assert(out->n_wire <= w.n_stops + 1);
    }
    free(stop);
    free(window);
    free(scratch);
    return status;
}

void impl_plan_release(struct impl_plan *plan)
{
    free(plan->action);
    free(plan->first);
    free(plan->full);
    free(plan->grad);
    free(plan->wire);
    free(plan->fresh);
    free(plan->sum);
    free(plan->fresh_module);
    free(plan->fresh_of_point);
    *plan = (struct impl_plan){0};
}
