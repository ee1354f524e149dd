/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_driver.c - calls the profiler plug-in as NCCL does, without NCCL: it
 * dlopens the file, takes the newest interface it finds (version 5, or 4 if
 * asked), and plays communicators and their events in the orders of NCCL's
 * src/plugin/profiler.cc.
 *
 *     nccl_driver PLUG-IN WHAT
 *
 * The events are written down here once more, after NCCL's public headers, and
 * not taken from the probe's.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GROUP = 1 << 0,
    COLL = 1 << 1,
    PROXY_OP = 1 << 3,
    GROUP_API = 1 << 8,
    COLL_API = 1 << 9,
    P2P_API = 1 << 10,
    RANKS = 4,
    THREADS = 8,
    STEPS = 3,
};

struct event5 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool graph;
        } api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            void *stream;
            bool graph;
        } p2p_api;
        struct {
            uint64_t seq;
            const char *func;
            const void *in;
            void *out;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algo, *proto;
            void *group;
        } coll;
        char room[256]; /* of events that a plug-in may not know */
    };
};

struct event4 {
    uint8_t type;
    void *parent;
    int rank;
    struct {
        uint64_t seq;
        const char *func;
        const void *in;
        void *out;
        size_t count;
        int root;
        const char *datatype;
        uint8_t channels, warps;
        const char *algo, *proto;
    } coll;
};

typedef void logger(int, unsigned long, const char *, int, const char *, ...);

static struct plug_in5 {
    const char *name;
    int (*init)(void **, uint64_t, int *, const char *, int, int, int,
                logger *);
    int (*start)(void *, void **, struct event5 *);
    int (*stop)(void *);
    int (*state)(void *, int, void *);
    int (*finalize)(void *);
} * five;

static struct plug_in4 {
    const char *name;
    int (*init)(void **, int *, const char *, uint64_t, int, int, int,
                logger *);
    int (*start)(void *, void **, struct event4 *);
    int (*stop)(void *);
    int (*state)(void *, int, void *);
    int (*finalize)(void *);
} * four;

static int mask; /* NCCL has one for all communicators */

static void must(bool is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "nccl_driver: %s\n", what);
        exit(3);
    }
}

static void no_log(int level, unsigned long flags, const char *file, int line,
                   const char *format, ...)
{
    (void)level;
    (void)flags;
    (void)file;
    (void)line;
    (void)format;
}

static void *open_comm(uint64_t id, const char *name, int ranks, int rank)
{
    void *context = NULL;
    must(five->init(&context, id, &mask, name, 1, ranks, rank, no_log) == 0,
         "init");
    must(context != NULL, "init gave no context");
    return context;
}

/* ncclAllGather and its kin before they return: the call, within the group that
 * NCCL makes for it if the program made none. */
static void *call(void *context, const char *func, size_t count,
                  const char *datatype)
{
    struct event5 e = {.type = COLL_API};
    void *handle = NULL;
    if ((mask & COLL_API) == 0) {
        return NULL;
    }
    e.api.func = func;
    e.api.count = count;
    e.api.datatype = datatype;
    must(five->start(context, &handle, &e) == 0, "a call");
    return handle;
}

/* The enqueueing of a call's kernel: after the call, maybe in another
 * thread. */
static void *launch(void *context, void *of, const char *func, size_t count,
                    const char *datatype, const void *in, void *out)
{
    struct event5 e = {.type = COLL, .parent = of, .rank = 1};
    void *handle = NULL;
    if ((mask & COLL) == 0) {
        return NULL;
    }
    e.coll.func = func;
    e.coll.in = in;
    e.coll.out = out;
    e.coll.count = count;
    e.coll.datatype = datatype;
    e.coll.algo = "RING";
    e.coll.proto = "SIMPLE";
    must(five->start(context, &handle, &e) == 0, "a launch");
    return handle;
}

static void stop(void *handle)
{
    if (handle) {
        must(five->stop(handle) == 0, "stop");
    }
}

static float storage[1 << 16];

/* Two units of 1000 and 600 elements over 4 ranks, this being rank 1. */
static void train(void *comm)
{
    static const size_t n[] = {250, 150};
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < 4; i++) {
            size_t m = n[i < 2 ? i : 3 - i];
            void *a = call(comm, "AllGather", m, "ncclBfloat16");
            stop(a);
            stop(launch(comm, a, "AllGather", m, "ncclBfloat16",
                        (char *)storage + 2 * m, storage));
            if (i < 2) {
                continue;
            }
            a = call(comm, "ReduceScatter", m, "ncclFloat32");
            stop(a);
            stop(launch(comm, a, "ReduceScatter", m, "ncclFloat32", storage,
                        storage + 9999));
        }
        stop(call(comm, "AllReduce", 1, "ncclFloat32"));
    }
}

/* A group: calls first, launches later, by size and not in order; stops in any
 * order, some twice, some never; and events that were not asked for. */
static void disorder(void *comm)
{
    void *h[16];
    struct event5 odd = {.type = GROUP_API};
    void *group = (void *)1;
    must(five->start(comm, &group, &odd) == 0 && !group, "a group");
    odd.type = (uint64_t)1 << 40;
    must(five->start(comm, &group, &odd) == 0 && !group, "no event");
    odd.type = PROXY_OP;
    must(five->start(comm, &group, &odd) == 0 && !group, "a proxy");
    must(five->start(NULL, &group, &odd) == 0 && !group, "no context");
    for (size_t i = 0; i < 16; i++) {
        h[i] = call(comm, "AllReduce", 100 + i, "ncclFloat32");
    }
    for (size_t i = 16; i-- > 0;) {
        void *l = launch(comm, h[i], "AllReduce", 100 + i, "ncclFloat32",
                         storage, storage);
        if (i % 3 != 0) {
            stop(l);
        }
        stop(i % 2 ? h[i] : h[15 - i]);
        must(five->state(h[i], 23, NULL) == 0, "a state");
    }
}

static void *comms[THREADS];

static void *in_thread(void *argument)
{
    void *comm = *(void **)argument;
    for (int i = 0; i < 500; i++) {
        void *h = call(comm, "AllGather", 64, "ncclFloat32");
        stop(launch(comm, h, "AllGather", 64, "ncclFloat32", storage, storage));
        stop(h);
    }
    must(five->finalize(comm) == 0, "finalize");
    return NULL;
}

static void threads(void)
{
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        comms[i] = open_comm(0x1000 + (uint64_t)i, "t", RANKS, i % RANKS);
        must(pthread_create(&t[i], NULL, in_thread, &comms[i]) == 0, "thread");
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(t[i], NULL);
    }
}

/* A CUDA graph: one call while it is captured, a launch each time it runs. */
static void graph(void *comm)
{
    void *h = call(comm, "AllReduce", 77, "ncclFloat32");
    stop(h);
    for (int i = 0; i < 5; i++) {
        stop(launch(comm, h, "AllReduce", 77, "ncclFloat32", storage, storage));
    }
}

static void messages(void *comm)
{
    struct event5 e = {.type = P2P_API};
    void *handle = NULL;
    e.p2p_api.func = "Send";
    e.p2p_api.count = 5;
    e.p2p_api.datatype = "ncclInt64";
    must(five->start(comm, &handle, &e) == 0, "a send");
    stop(handle);
    e.p2p_api.func = NULL; /* as a library might that came later */
    e.p2p_api.datatype = "ncclFloat4e2m1";
    must(five->start(comm, &handle, &e) == 0, "something else");
    stop(handle);
}

static void version4(void)
{
    void *context = NULL;
    void *handle = NULL;
    struct event4 e = {.type = COLL, .rank = 1};
    must(four->init(&context, &mask, "four", 0x44, 1, RANKS, 1, no_log) == 0,
         "init");
    must((mask & COLL) != 0, "the mask");
    for (int s = 0; s < STEPS; s++) {
        e.coll.func = "AllGather";
        e.coll.count = 250;
        e.coll.datatype = "ncclFloat32";
        e.coll.in = storage + 250;
        e.coll.out = storage;
        e.coll.algo = "RING";
        e.coll.proto = "LL";
        must(four->start(context, &handle, &e) == 0, "a collective");
        must(four->stop(handle) == 0, "stop");
    }
    must(four->finalize(context) == 0, "finalize");
}

static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "nccl_driver: %s\n", dlerror());
        exit(3);
    }
    must(!dlsym(library, "ncclProfiler_v6"), "version 6 is not ours");
    five = dlsym(library, "ncclProfiler_v5");
    four = dlsym(library, "ncclProfiler_v4");
    must(five && four, "no interface");
    must(!dlsym(library, "probe_log_open"), "it exports its own");
    /* NCCL closes it with the last communicator, and may open it again. */
    must(dlclose(library) == 0, "dlclose");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    must(library && dlsym(library, "ncclProfiler_v5") == five,
         "it did not stay");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: nccl_driver PLUG-IN WHAT\n", stderr);
        return 64;
    }
    const char *what = argv[2];
    load(argv[1]);
    if (strcmp(what, "version4") == 0) {
        version4();
        return 0;
    }
    void *comm = open_comm(0xfeed, "world", RANKS, 1);
    if (strcmp(what, "train") == 0) {
        train(comm);
    } else if (strcmp(what, "disorder") == 0) {
        disorder(comm);
    } else if (strcmp(what, "threads") == 0) {
        threads();
    } else if (strcmp(what, "graph") == 0) {
        graph(comm);
    } else if (strcmp(what, "messages") == 0) {
        messages(comm);
    } else if (strcmp(what, "shared") == 0) {
        (void)open_comm(0xfeed, "world", RANKS, 2);
    } else if (strcmp(what, "die") == 0) {
        train(comm);
        (void)kill(getpid(), SIGKILL);
    } else if (strcmp(what, "child") == 0) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0) {
            train(comm);
            exit(0);
        }
        must(waitpid(pid, &status, 0) == pid && status == 0, "the child");
    } else {
        must(false, "WHAT?");
    }
    must(five->finalize(comm) == 0, "finalize");
    return 0;
}
