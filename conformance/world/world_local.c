/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_local.c - every rank is a forked process; where that is wanted, another
 * process beside them carries what they send (broker.h). The parent sleeps
 * until a rank says that it ends, and looks every few milliseconds for ranks
 * that died silently. It never waits for a process that is not its own child.
 */
#include "broker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOOK_MS = 2,
    /* Time for ranks that the watchdog has aborted, to write what they know. */
    GRACE_MS = 500,
};

struct child {
    pid_t pid; /* 0: not started, or reaped */
    bool late; /* had not ended when the watchdog fired */
    bool shot; /* was sent SIGKILL by us */
};

struct local {
    const struct world_job *job;
    struct arena *arena;
    struct child child[WORLD_MAX_RANKS];
    uint32_t n_running;
    bool asked;            /* ranks were asked where they stand */
    struct broker *broker; /* NULL: ranks share the arena */
    bool lost;             /* the broker has been lost */
};

static _Noreturn void be_carried(const struct broker *b,
                                 const struct world_job *job, uint32_t rank)
{
    struct broker_area *const own = broker_area(b->arena, rank);
    const int bell = b->bell[rank];
    const bool spare = b->arena->spare;

    broker_keep_own(b, rank);
    broker_rank_run(own, bell, spare, job, rank);
    (void)fflush(NULL);
    broker_rank_end(own, bell);
    _exit(EXIT_SUCCESS);
}

static _Noreturn void be_rank(const struct local *local, uint32_t rank,
                              pid_t parent)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                SIGABRT, SIGSYS, SIGTRAP, SIGINT,
                                SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    /* The parent may have died before this call. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(EXIT_FAILURE);
    }
    (void)prctl(PR_SET_DUMPABLE, 1); /* ranks read each other's memory */
    /* The parent's handlers, of a test framework say, would act as if this
     * process were the parent. A rank that crashes has to die of it. */
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        (void)signal(fatal[i], SIG_DFL);
    }
    if (local->broker) {
        be_carried(local->broker, local->job, rank);
    }
    arena_rank_run(local->arena, local->job, rank);
    (void)fflush(NULL);
    arena_rank_end(local->arena, rank);
    _exit(EXIT_SUCCESS);
}

/* Asks ranks once where they stand: what happens later follows from what came
 * first. */
static void ask(struct local *local)
{
    pid_t pid[WORLD_MAX_RANKS];

    for (uint32_t r = 0; r < local->job->n_ranks; r++) {
        pid[r] = local->child[r].pid;
    }
    if (!local->asked) {
        arena_stack_ask(local->arena, pid);
    }
    local->asked = true;
}

/* Notes how a rank ended. If it said that it ends, and then ended in another
 * way than by that, it is wrapped in a program that has something to report. */
static void note_end(struct local *local, uint32_t rank, int wait_status)
{
    struct world_result *result = &local->job->result[rank];
    const struct child *child = &local->child[rank];
    arena_read_result(local->arena, rank, result);
    if (atomic_load(&arena_rank(local->arena, rank)->ended) != 0) {
        result->end = child->late ? WORLD_TIMED_OUT : WORLD_RETURNED;
        if (!child->late && WIFEXITED(wait_status) &&
            WEXITSTATUS(wait_status) != 0) {
            result->end = WORLD_EXITED;
            result->status = WEXITSTATUS(wait_status);
        }
        return;
    }
    if (WIFSIGNALED(wait_status)) {
        result->end = child->shot ? WORLD_TIMED_OUT : WORLD_SIGNALLED;
        result->status = child->shot ? FSDP_ERR_TIMEOUT : FSDP_ERR_ABORTED;
        result->signal = WTERMSIG(wait_status);
    } else {
        result->end = WORLD_EXITED;
        result->status = WEXITSTATUS(wait_status);
    }
    ask(local);
    arena_abort(local->arena, FSDP_ERR_ABORTED);
}

/* Collects the ranks that have ended; waits for those that have said that they
 * end. */
static void reap(struct local *local)
{
    for (uint32_t r = 0; r < local->job->n_ranks; r++) {
        struct child *child = &local->child[r];
        if (child->pid == 0) {
            continue;
        }
        bool said = atomic_load(&arena_rank(local->arena, r)->ended) != 0 ||
                    child->shot;
        int wait_status = 0;
        pid_t pid;
        do {
            pid = waitpid(child->pid, &wait_status, said ? 0 : WNOHANG);
        } while (pid < 0 && errno == EINTR);
        if (pid != 0) {
            /* An error means that another process or the kernel has collected
             * it (SIGCHLD ignored, say): its status is lost, but it is gone. */
            child->pid = 0;
            note_end(local, r, pid < 0 ? 0 : wait_status);
            local->n_running--;
        }
    }
}

static void shoot(struct local *local)
{
    for (uint32_t r = 0; r < local->job->n_ranks; r++) {
        if (local->child[r].pid != 0) {
            local->child[r].late = true;
            local->child[r].shot = true;
            (void)kill(local->child[r].pid, SIGKILL);
        }
    }
}

/* Looks after the ranks until the last one is gone. */
static void supervise(struct local *local)
{
    struct arena_watch watch = {0};
    int64_t limit = local->job->timeout_ms;
    bool fired = false;
    while (local->n_running > 0) {
        uint32_t seen = atomic_load(&local->arena->n_ended);
        reap(local);
        if (local->n_running == 0) {
            break;
        }
        if (local->broker && !local->lost && broker_is_lost(local->broker)) {
            local->lost = true;
            arena_abort(local->arena, FSDP_ERR_COMM);
        }
        if (arena_idle_ms(local->arena, &watch) > limit) {
            if (fired) {
                shoot(local);
                continue;
            }
            fired = true;
            watch.since_ms = arena_now_ms();
            limit = limit < GRACE_MS ? limit : GRACE_MS;
            for (uint32_t r = 0; r < local->job->n_ranks; r++) {
                local->child[r].late =
                    local->child[r].pid != 0 &&
                    atomic_load(&arena_rank(local->arena, r)->ended) == 0;
            }
            ask(local);
            watch.since_ms = arena_now_ms();
            arena_abort(local->arena, FSDP_ERR_TIMEOUT);
        }
        arena_wait_ended(local->arena, seen, LOOK_MS);
    }
}

/* Starts the ranks and looks after them. */
static int run_ranks(struct local *local)
{
    const struct world_job *const job = local->job;
    const pid_t parent = getpid();
    int status = FSDP_OK;

    for (uint32_t r = 0; r < job->n_ranks; r++) {
        pid_t pid = fork();
        if (pid == 0) {
            be_rank(local, r, parent);
        }
        if (pid < 0) {
            status = world_fail(job->error, FSDP_ERR_NOMEM, r, errno, "world",
                                "cannot start rank %u of %u: %s", r,
                                job->n_ranks, strerror(errno));
            shoot(local);
            break;
        }
        local->child[r].pid = pid;
        local->n_running++;
    }
    supervise(local);
    return status;
}

int world_run_local(const struct world_job *job)
{
    struct local local = {.job = job, .arena = arena_open(job)};
    int status;
    if (!local.arena) {
        return world_fail(job->error, FSDP_ERR_NOMEM, 0, errno, "world",
                          "no shared memory for %u ranks", job->n_ranks);
    }
    /* Text that is buffered now would be written once by each rank. */
    (void)fflush(NULL);
    status = run_ranks(&local);
    arena_close(local.arena);
    return status;
}

int world_run_carried_local(const struct world_job *job)
{
    struct broker broker;
    struct local local = {.job = job, .broker = &broker};
    int status = FSDP_OK;

    if (job->n_ranks > BROKER_RANKS) {
        return world_fail(job->error, FSDP_ERR_NOMEM, 0, 0, "world",
                          "%u ranks cannot be isolated: %d at most",
                          job->n_ranks, (int)BROKER_RANKS);
    }
    if (!broker_open(&broker, job)) {
        return world_fail(job->error, FSDP_ERR_NOMEM, 0, errno, "world",
                          "no memory to carry between %u ranks", job->n_ranks);
    }
    local.arena = broker.arena;
    (void)fflush(NULL);
    if (!broker_start(&broker)) {
        status = world_fail(job->error, FSDP_ERR_NOMEM, 0, errno, "world",
                            "cannot start a process beside %u ranks: %s",
                            job->n_ranks, strerror(errno));
    }
    if (status == FSDP_OK) {
        status = run_ranks(&local);
        local.lost = !broker_end(&broker) || local.lost;
    }
    if (local.lost) {
        status = world_fail(job->error, FSDP_ERR_COMM, 0, 0, "world",
                            "the process that carries what ranks send did not "
                            "come to its end");
    }
    if (job->carried && status == FSDP_OK) {
        for (uint32_t r = 0; r < job->n_ranks; r++) {
            record_carried_copy(&job->carried[r], &broker.carried[r]);
        }
    }
    broker_close(&broker);
    return status;
}
