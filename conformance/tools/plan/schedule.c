/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - from the oracle's walk to tasks.
 */
#include "tools/plan/schedule.h"
#include "record/record_internal.h"

#include <stdlib.h>
#include <string.h>

/* An event that the oracle's walk reported, in its order. */
struct event {
    enum {
        OPENS,
        CLOSES,
        COLLECTIVE,
        POINT
    } what;
    bool backward;
    uint32_t unit; /* or the module of a point */
    uint32_t kind; /* of a collective, or the point */
    uint32_t dtype;
    uint64_t elements;
};

struct maker {
    const struct plan_ask *ask;
    struct schedule *out;
    struct event *event;
    uint32_t n_events, room_events, room;
    bool failed; /* out of memory */
    /* For each unit: the gather that brought it; whether its window is open. */
    uint32_t *gather;
    bool *open;
    uint32_t *reduced; /* the last task of each reduction, in order */
    uint32_t n_reduced;
    uint32_t last[SCHEDULE_N_STREAMS]; /* task of each stream */
    uint32_t wait; /* a reduction that the next compute waits for */
};

/* Room for one more; false: out of memory. */
static bool make_room(void **array, uint32_t n, uint32_t *room, size_t size)
{
    void *grown;

    if (n < *room) {
        return true;
    }
    grown = realloc(*array, (*room == 0 ? 256 : 2 * (size_t)*room) * size);
    if (!grown) {
        return false;
    }
    *array = grown;
    *room = *room == 0 ? 256 : 2 * *room;
    return true;
}

static void note(struct maker *k, struct event e)
{
    void *array = k->event;

    if (k->failed ||
        !make_room(&array, k->n_events, &k->room_events, sizeof(*k->event))) {
        k->failed = true;
        return;
    }
    k->event = array;
    k->event[k->n_events++] = e;
}

static void see_window(void *context, uint32_t unit, bool opens, bool backward)
{
    note(context, (struct event){.what = opens ? OPENS : CLOSES,
                                 .backward = backward,
                                 .unit = unit});
}

static void see_collective(void *context, const struct record_collective *c)
{
    note(context, (struct event){.what = COLLECTIVE,
                                 .unit = c->unit,
                                 .kind = c->kind,
                                 .dtype = c->dtype,
                                 .elements = c->n});
}

static void see_point(void *context, uint32_t point, uint32_t module)
{
    note(context, (struct event){.what = POINT,
                                 .backward = point != FSDP_PRE_FORWARD &&
                                             point != FSDP_POST_FORWARD,
                                 .unit = module,
                                 .kind = point});
}

/* Adds a task behind the last one of its stream; its index. */
static uint32_t add(struct maker *k, struct schedule_task t)
{
    struct schedule *const s = k->out;
    void *array = s->task;

    if (k->failed || !make_room(&array, s->n, &k->room, sizeof(*s->task))) {
        k->failed = true;
        return SCHEDULE_NONE;
    }
    s->task = array;
    s->task[s->n] = t;
    k->last[t.stream] = s->n;
    return s->n++;
}

/* The storage of what is gathered is free once compute has come this far. */
static void gather(struct maker *k, uint32_t unit, const struct event *e)
{
    k->gather[unit] =
        add(k, (struct schedule_task){
                   .stream = SCHEDULE_SHARD,
                   .kind = FSDP_ALL_GATHER,
                   .unit = unit,
                   .elements = e->elements,
                   .dtype = e->dtype,
                   .after = {k->last[SCHEDULE_COMPUTE], SCHEDULE_NONE}});
}

/* The gather of a unit in some window behind `at`; NULL: there is none. */
static const struct event *find_gather(const struct maker *k, uint32_t at,
                                       uint32_t unit)
{
    for (uint32_t i = at; i < k->n_events; i++) {
        const struct event *const e = &k->event[i];

        if (e->what == COLLECTIVE && e->kind == FSDP_ALL_GATHER &&
            e->unit == unit) {
            return e;
        }
        if (e->what == CLOSES && e->unit == unit) {
            return NULL;
        }
    }
    return NULL;
}

static void gather_once(struct maker *k, uint32_t at, uint32_t unit)
{
    const struct event *e;

    if (k->gather[unit] == SCHEDULE_NONE) {
        e = find_gather(k, at, unit);
        if (e) {
            gather(k, unit, e);
        }
    }
}

static void gather_ahead(struct maker *k, uint32_t at)
{
    const bool backward = k->event[at].backward;
    const struct run_case *const c = &k->ask->c;
    uint32_t depth = backward ? c->prefetch_backward : c->prefetch_forward;

    for (uint32_t i = at + 1; depth > 0 && i < k->n_events; i++) {
        const struct event *const e = &k->event[i];

        if ((e->what == OPENS || e->what == POINT) && e->backward != backward) {
            return;
        }
        if (e->what != OPENS || k->open[e->unit]) {
            continue;
        }
        gather_once(k, i, e->unit);
        depth--;
    }
}

static void open_window(struct maker *k, uint32_t at)
{
    const uint32_t unit = k->event[at].unit;

    k->open[unit] = true;
    gather_once(k, at, unit);
    gather_ahead(k, at);
}

static void reduce(struct maker *k, const struct event *e)
{
    const bool scatters = e->kind == FSDP_REDUCE_SCATTER;
    const uint32_t in_flight = k->ask->c.reduces_in_flight;
    const bool follows = !scatters && k->ask->c.replicas < k->ask->c.ranks;
    const uint32_t task = add(
        k, (struct schedule_task){
               .stream = scatters ? SCHEDULE_SHARD : SCHEDULE_REPLICATE,
               .kind = e->kind,
               .unit = e->unit,
               .elements = e->elements,
               .dtype = e->dtype,
               .after = {k->last[SCHEDULE_COMPUTE],
                         follows ? k->last[SCHEDULE_SHARD] : SCHEDULE_NONE}});

    if (follows) { /* the second half of the same reduction */
        k->reduced[k->n_reduced - 1] = task;
    } else {
        k->reduced[k->n_reduced++] = task;
    }
    if (k->n_reduced > in_flight) {
        k->wait = k->reduced[k->n_reduced - 1 - in_flight];
    }
}

static void compute(struct maker *k, const struct event *e)
{
    const uint32_t unit = k->ask->units->unit_of_module[e->unit];

    if (e->kind != FSDP_PRE_FORWARD && e->kind != FSDP_PRE_BACKWARD &&
        e->kind != FSDP_PRE_RECOMPUTE) {
        return;
    }
    (void)add(
        k, (struct schedule_task){
               .stream = SCHEDULE_COMPUTE,
               .unit = unit,
               .point = e->kind,
               .module = e->unit,
               .after = {unit != FSDP_NO_UNIT ? k->gather[unit] : SCHEDULE_NONE,
                         k->wait}});
    k->wait = SCHEDULE_NONE;
}

static void arrange(struct maker *k)
{
    for (uint32_t i = 0; i < k->n_events && !k->failed; i++) {
        const struct event *const e = &k->event[i];

        if (e->what == OPENS) {
            open_window(k, i);
        } else if (e->what == CLOSES) {
            k->open[e->unit] = false;
            k->gather[e->unit] = SCHEDULE_NONE;
        } else if (e->what == POINT) {
            compute(k, e);
        } else if (e->kind != FSDP_ALL_GATHER) {
            reduce(k, e);
        }
    }
    /* The optimizer waits for all reductions. */
    (void)add(k,
              (struct schedule_task){.stream = SCHEDULE_COMPUTE,
                                     .unit = FSDP_NO_UNIT,
                                     .point = FSDP_END,
                                     .after = {k->last[SCHEDULE_SHARD],
                                               k->last[SCHEDULE_REPLICATE]}});
}

static int arrange_all(struct maker *k)
{
    const size_t n = (size_t)k->ask->units->n_units + 1;

    k->gather = calloc(n, sizeof(*k->gather));
    k->open = calloc(n, sizeof(*k->open));
    k->reduced = calloc((size_t)k->n_events + 1, sizeof(*k->reduced));
    if (!k->gather || !k->open || !k->reduced) {
        return FSDP_ERR_NOMEM;
    }
    memset(k->gather, 0xff, n * sizeof(*k->gather));
    memset(k->last, 0xff, sizeof(k->last));
    k->wait = SCHEDULE_NONE;
    arrange(k);
    return k->failed ? FSDP_ERR_NOMEM : FSDP_OK;
}

int schedule_make(const struct plan_ask *ask, struct schedule *out,
                  struct fsdp_error *error)
{
    struct maker k = {.ask = ask, .out = out};
    const struct expect_watch watch = {NULL, see_collective, see_window,
                                       see_point, &k};
    struct expect e = {0};
    int status;

    memset(out, 0, sizeof(*out));
    if (ask->c.scenario != CASE_TRAIN) {
        return record_fail(error, FSDP_ERR_INVALID, "plan",
                           "only what trains has a schedule: the scenario is "
                           "%s",
                           case_scenario_name(ask->c.scenario));
    }
    status = expect_make_watched(&ask->c, ask->model, ask->units, ask->idle,
                                 &watch, &e);
    out->chunk = e.resting;
    if (status == FSDP_OK && !k.failed) {
        status = arrange_all(&k);
    } else if (status == FSDP_OK) {
        status = FSDP_ERR_NOMEM;
    }
    expect_release(&e);
    free(k.event);
    free(k.gather);
    free(k.open);
    free(k.reduced);
    return status == FSDP_OK
               ? FSDP_OK
               : record_fail(error, status, "plan", "no schedule: %s",
                             fsdp_status_text(status));
}

void schedule_release(struct schedule *s)
{
    free(s->task);
    memset(s, 0, sizeof(*s));
}
