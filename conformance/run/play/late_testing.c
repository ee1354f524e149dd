/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_testing.c - streams as queues, and the order in which their work is
 * done.
 */
#include "run/play/late_testing.h"

#include <stdlib.h>
#include <string.h>

enum {
    STREAMS = 8
};

enum what {
    DO_OPERATOR,
    DO_COPY,
    DO_COLLECTIVE,
    DO_WAIT,
};

struct item {
    uint32_t what;
    union {
        struct fsdp_op op;
        struct {
            void *to;
            const void *from;
            uint64_t bytes;
        } copy;
        struct fsdp_collective collective;
        struct {
            struct fsdp_stream *earlier;
            uint64_t upto;
        } wait;
    } u;
};

struct fsdp_stream {
    const char *name;
    struct item *item;
    uint64_t given, done, room;
    bool busy; /* its work is being done, further down on the call stack */
};

static _Thread_local struct {
    struct late_how how;
    struct fsdp_device device;
    struct fsdp_comm comm;
    const struct fsdp_device *real_device;
    const struct fsdp_comm *real_comm;
    struct fsdp_stream *stream[STREAMS];
    int status;
    bool forget_next, no_syncs;
    uint64_t forgotten;
} my;

/* ---- Getting on -------------------------------------------------------- */

static int do_item(const struct item *x)
{
    const struct fsdp_device *d = my.real_device;

    switch (x->what) {
    case DO_OPERATOR:
        return d->run(d->self, NULL, &x->u.op);
    case DO_COPY:
        return d->copy(d->self, NULL, x->u.copy.to, x->u.copy.from,
                       x->u.copy.bytes);
    case DO_COLLECTIVE:
        return my.real_comm->run(my.real_comm->self, NULL, &x->u.collective);
    default:
        return FSDP_OK;
    }
}

static void note(int status)
{
    my.status = my.status != FSDP_OK ? my.status : status;
}

static bool can_go_on(const struct fsdp_stream *s)
{
    const struct item *x = &s->item[s->done];

    return s->done < s->given && !s->busy &&
           (x->what != DO_WAIT || x->u.wait.earlier->done >= x->u.wait.upto);
}

static void run_eager(void)
{
    for (uint32_t i = 0; my.how.eager && i < STREAMS; i++) {
        struct fsdp_stream *s = my.stream[i];
        if (!s || strcmp(s->name, my.how.eager) != 0) {
            continue;
        }
        while (can_go_on(s)) {
            struct item x = s->item[s->done];
            note(do_item(&x));
            s->done++;
        }
    }
}

/* Recurses as deep as streams wait for each other.
 * NOLINTNEXTLINE(misc-no-recursion) */
static void run_to(struct fsdp_stream *s, uint64_t upto)
{
    while (s->done < upto) {
        struct item x = s->item[s->done];
        s->busy = true;
        if (x.what == DO_WAIT) {
            run_to(x.u.wait.earlier, x.u.wait.upto);
        }
        note(do_item(&x));
        s->done++;
        s->busy = false;
        run_eager();
    }
}

static int give(struct fsdp_stream *s, const struct item *x)
{
    if (s->given == s->room) {
        uint64_t room = s->room ? 2 * s->room : 64;
        void *grown = realloc(s->item, room * sizeof(*s->item));
        if (!grown) {
            return FSDP_ERR_NOMEM;
        }
        s->item = grown;
        s->room = room;
    }
    s->item[s->given++] = *x;
    run_eager();
    return FSDP_OK;
}

/* ---- The device -------------------------------------------------------- */

static int device_alloc(void *self, uint64_t bytes, void **out)
{
    (void)self;
    return my.real_device->alloc(my.real_device->self, bytes, out);
}

static void device_free(void *self, void *p)
{
    (void)self;
    my.real_device->free(my.real_device->self, p);
}

static void device_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                        uint32_t unit, void *p, uint64_t bytes)
{
    (void)self;
    (void)stream;
    my.real_device->live(my.real_device->self, NULL, kind, unit, p, bytes);
}

static void device_dead(void *self, struct fsdp_stream *stream, void *p)
{
    (void)self;
    (void)stream;
    my.real_device->dead(my.real_device->self, NULL, p);
}

static int device_copy(void *self, struct fsdp_stream *stream, void *to,
                       const void *from, uint64_t bytes)
{
    struct item x = {.what = DO_COPY, .u.copy = {to, from, bytes}};

    (void)self;
    return stream ? give(stream, &x) : do_item(&x);
}

static int device_run(void *self, struct fsdp_stream *stream,
                      const struct fsdp_op *op)
{
    struct item x = {.what = DO_OPERATOR, .u.op = *op};

    (void)self;
    return stream ? give(stream, &x) : do_item(&x);
}

static int stream_open(void *self, const char *name, struct fsdp_stream **out)
{
    uint32_t i = 0;

    (void)self;
    while (i < STREAMS && my.stream[i]) {
        i++;
    }
    *out = i < STREAMS ? calloc(1, sizeof(**out)) : NULL;
    if (!*out) {
        return FSDP_ERR_NOMEM;
    }
    (*out)->name = name;
    my.stream[i] = *out;
    return FSDP_OK;
}

/* Waits for this stream may still be in other queues: it is freed at the
 * end. */
static void stream_close(void *self, struct fsdp_stream *s)
{
    (void)self;
    if (s) {
        run_to(s, s->given);
    }
}

/* Tickets count from 1, as none may be 0. */
static int device_mark(void *self, struct fsdp_stream *stream, uint64_t *out)
{
    (void)self;
    *out = stream ? stream->given + 1 : 1;
    return FSDP_OK;
}

static bool forgets(const char *edge)
{
    bool named = my.how.forget && strcmp(edge, my.how.forget) == 0;
    bool next = my.forget_next;

    my.forget_next = named && my.how.forget_next;
    my.forgotten += named;
    return named || next;
}

static int device_wait(void *self, struct fsdp_stream *later,
                       struct fsdp_stream *earlier, uint64_t ticket,
                       const char *edge)
{
    struct item x = {.what = DO_WAIT};

    (void)self;
    if (!earlier || forgets(edge)) {
        return FSDP_OK;
    }
    x.u.wait.earlier = earlier;
    x.u.wait.upto = ticket ? ticket - 1 : earlier->given;
    if (later) {
        return give(later, &x);
    }
    run_to(earlier, x.u.wait.upto);
    return my.status;
}

static int device_sync(void *self, struct fsdp_stream *stream)
{
    (void)self;
    if (!stream && my.no_syncs) {
        my.forgotten++;
        return FSDP_OK;
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        struct fsdp_stream *s = my.stream[i];
        if (s && (!stream || s == stream)) {
            run_to(s, s->given);
        }
    }
    return my.status;
}

static int communicate(void *self, struct fsdp_stream *stream,
                       const struct fsdp_collective *c)
{
    struct item x = {.what = DO_COLLECTIVE,
                     .u.collective = fsdp_collective_of(c)};

    (void)self;
    return stream && !my.how.no_streams ? give(stream, &x) : do_item(&x);
}

static void abort_all(void *self, int32_t status)
{
    (void)self;
    my.real_comm->abort(my.real_comm->self, status);
}

/* ---- Open and close ---------------------------------------------------- */

int late_open(struct fsdp_env *env, const struct late_how *how)
{
    memset(&my, 0, sizeof(my));
    my.how = *how;
    my.real_device = env->device;
    my.real_comm = env->comm;
    my.device = (struct fsdp_device){.size = sizeof(my.device),
                                     .place = env->device->place,
                                     .profile = env->device->profile,
                                     .alloc = device_alloc,
                                     .free = device_free,
                                     .live = device_live,
                                     .dead = device_dead,
                                     .copy = device_copy,
                                     .run = device_run,
                                     .stream_open = stream_open,
                                     .stream_close = stream_close,
                                     .mark = device_mark,
                                     .wait = device_wait,
                                     .sync = device_sync};
    my.comm = (struct fsdp_comm){.size = sizeof(my.comm),
                                 .place = env->comm->place,
                                 .takes_streams = !how->no_streams,
                                 .run = communicate,
                                 .abort = abort_all};
    env->device = &my.device;
    env->comm = &my.comm;
    return FSDP_OK;
}

void late_close(struct fsdp_env *env)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (my.stream[i]) {
            free(my.stream[i]->item);
            free(my.stream[i]);
        }
    }
    memset(my.stream, 0, sizeof(my.stream));
    env->device = my.real_device;
    env->comm = my.real_comm;
}

uint64_t late_forgotten(void)
{
    return my.forgotten;
}

void late_forget_syncs(bool on)
{
    my.no_syncs = on;
}
