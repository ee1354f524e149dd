/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_ipc_test.c - memory and events between two processes, of which one
 * has them and the other opens them: what CUDA allows, and what it forbids.
 */
#include "cuda/emulated/emulated.h"

#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BLOCK = 2 << 20
};

/* What the owner tells the other process. */
struct handles {
    cudaIpcMemHandle_t small[2], whole[2];
    cudaIpcEventHandle_t event;
};

/* Two ends: what one writes the other reads. */
struct ends {
    int in, out;
};

static bool say(const struct ends *e, const void *p, size_t bytes)
{
    return write(e->out, p, bytes) == (ssize_t)bytes;
}

static bool hear(const struct ends *e, void *p, size_t bytes)
{
    return read(e->in, p, bytes) == (ssize_t)bytes;
}

static bool is(cudaError_t got, cudaError_t want, const char *what)
{
    if (got != want) {
        fprintf(stderr, "%s: %s, not %s\n", what, cudaGetErrorName(got),
                cudaGetErrorName(want));
    }
    return got == want;
}

#define IS(call, want) is(call, want, #call)

/* ---- The owner --------------------------------------------------------- */

struct owner {
    cudaStream_t stream;
    cudaEvent_t event;
    void *small[2], *whole[2], *pinned;
};

static bool own(struct owner *o, struct handles *h)
{
    bool all =
        IS(cudaSetDevice(0), cudaSuccess) &&
        IS(cudaStreamCreateWithFlags(&o->stream, cudaStreamNonBlocking),
           cudaSuccess) &&
        IS(cudaEventCreateWithFlags(&o->event, cudaEventDisableTiming |
                                                   cudaEventInterprocess),
           cudaSuccess) &&
        IS(cudaIpcGetEventHandle(&h->event, o->event), cudaSuccess) &&
        IS(cudaHostAlloc(&o->pinned, sizeof(int), 0), cudaSuccess);

    for (int i = 0; i < 2 && all; i++) {
        all = IS(cudaMalloc(&o->small[i], 1024), cudaSuccess) &&
              IS(cudaMalloc(&o->whole[i], BLOCK), cudaSuccess) &&
              IS(cudaIpcGetMemHandle(&h->small[i], o->small[i]), cudaSuccess) &&
              IS(cudaIpcGetMemHandle(&h->whole[i], o->whole[i]), cudaSuccess);
    }
    return all;
}

/* A number into the first block, an event behind it; then what is forbidden,
 * if `rude`: the other has it open. */
static int be_owner(const struct ends *e, bool rude)
{
    struct owner o;
    struct handles h;
    char word = 0;
    bool all = own(&o, &h) && say(e, &h, sizeof(h)) && hear(e, &word, 1);

    *(int *)o.pinned = 42;
    all = all &&
          IS(cudaMemcpyAsync(o.whole[0], o.pinned, sizeof(int),
                             cudaMemcpyDefault, o.stream),
             cudaSuccess) &&
          IS(cudaEventRecord(o.event, o.stream), cudaSuccess) &&
          say(e, &word, 1);
    while (all && cudaEventQuery(o.event) == cudaErrorNotReady) {
    }
    all = all && hear(e, &word, 1); /* it has seen that; not rude: closed */
    if (rude) {
        all = all && IS(cudaEventDestroy(o.event), cudaSuccess) &&
              IS(cudaFree(o.whole[0]), cudaErrorUnknown) && say(e, &word, 1);
    } else {
        all = all && IS(cudaFree(o.whole[0]), cudaSuccess) &&
              IS(cudaEventDestroy(o.event), cudaSuccess) && say(e, &word, 1);
    }
    return all ? 0 : 1;
}

/* ---- The other --------------------------------------------------------- */

static cudaError_t open_memory(void **p, cudaIpcMemHandle_t handle)
{
    return cudaIpcOpenMemHandle(p, handle, cudaIpcMemLazyEnablePeerAccess);
}

static bool close_all(void *const *p, cudaEvent_t event)
{
    return IS(cudaIpcCloseMemHandle(p[2]), cudaSuccess) &&
           IS(cudaIpcCloseMemHandle(p[2]), cudaSuccess) &&
           IS(cudaIpcCloseMemHandle(p[2]), cudaErrorInvalidValue) &&
           IS(cudaIpcCloseMemHandle(p[3]), cudaSuccess) &&
           IS(cudaIpcCloseMemHandle(p[0]), cudaSuccess) &&
           IS(cudaEventDestroy(event), cudaSuccess);
}

/* A block is opened once, and counted; of one that two share the second is
 * refused. */
static bool open_all(void **p, cudaEvent_t *event, const struct handles *h)
{
    void *again = NULL;

    return IS(cudaSetDevice(0), cudaSuccess) &&
           IS(open_memory(&p[0], h->small[0]), cudaSuccess) &&
           IS(open_memory(&p[1], h->small[1]), cudaErrorAlreadyMapped) &&
           IS(open_memory(&p[2], h->whole[0]), cudaSuccess) &&
           IS(open_memory(&again, h->whole[0]), cudaSuccess) && again == p[2] &&
           IS(open_memory(&p[3], h->whole[1]), cudaSuccess) &&
           IS(cudaIpcOpenEventHandle(event, h->event), cudaSuccess) &&
           IS(cudaEventQuery(*event), cudaSuccess); /* not recorded yet */
}

static int be_other(const struct ends *e, bool rude)
{
    struct handles h;
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    cudaEvent_t mine = NULL;
    void *p[4] = {NULL, NULL, NULL, NULL};
    void *pinned = NULL;
    char word = 0;
    bool all = hear(e, &h, sizeof(h)) && open_all(p, &event, &h) &&
               say(e, &word, 1) && hear(e, &word, 1);

    all = all &&
          IS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
             cudaSuccess) &&
          IS(cudaEventCreateWithFlags(&mine, cudaEventDisableTiming),
             cudaSuccess) &&
          IS(cudaHostAlloc(&pinned, sizeof(int), 0), cudaSuccess) &&
          IS(cudaStreamWaitEvent(stream, event, 0), cudaSuccess) &&
          IS(cudaMemcpyAsync(pinned, p[2], sizeof(int), cudaMemcpyDefault,
                             stream),
             cudaSuccess) &&
          IS(cudaEventRecord(mine, stream), cudaSuccess);
    while (all && cudaEventQuery(mine) == cudaErrorNotReady) {
    }
    all = all && *(int *)pinned == 42;
    if (rude) {
        return all && say(e, &word, 1) && hear(e, &word, 1) &&
                       IS(cudaEventQuery(event), cudaErrorUnknown)
                   ? 0
                   : 1;
    }
    return all && close_all(p, event) && say(e, &word, 1) && hear(e, &word, 1)
               ? 0
               : 1;
}

/* ---- Both -------------------------------------------------------------- */

static void play(const char *order, bool rude)
{
    int there[2];
    int back[2];
    pid_t child[2];

    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    for (int i = 0; i < 2; i++) {
        const struct ends e = {i == 0 ? back[0] : there[0],
                               i == 0 ? there[1] : back[1]};

        child[i] = fork();
        if (child[i] == 0) {
            (void)setenv("FSDP_EMULATED_ORDER", order, 1);
            close(i == 0 ? back[1] : there[1]); /* who is alone reads an end */
            _exit(i == 0 ? be_owner(&e, rude) : be_other(&e, rude));
        }
        assert_true(child[i] > 0);
    }
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(back[i]);
    }
    for (int i = 0; i < 2; i++) {
        int status = -1;

        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        if (status != 0) {
            fail_msg("%s, order %s: status %d", i == 0 ? "owner" : "other",
                     order, status);
        }
    }
}

UNIT_TEST(test_polite)
{
    play("late", false);
    play("early", false);
    play("1", false);
    play("2", false);
}

UNIT_TEST(test_rude)
{
    play("late", true);
    play("3", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_polite),
        cmocka_unit_test(test_rude),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
