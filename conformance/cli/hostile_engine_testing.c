/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_engine_testing.c - the reference engine as a plug-in that does more
 * than it should in the middle of its first pass: FSDP_HOSTILE says what. What
 * it computes is right. For supervision_test.sh.
 */
#include <fsdp/engine.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

const struct fsdp_engine *fsdp_ref_engine(void);
const struct fsdp_engine *fsdp_engine_v1(void);

static const struct fsdp_engine *real;

/* Lives on in a session of its own, with all descriptors, until it is found. */
static void leave_daemon(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            setsid();
            prctl(PR_SET_NAME, "hostile-daemon");
            for (;;) {
                pause();
            }
        }
        _exit(0);
    }
}

/* What a worker says to its supervisor, and what a verdict looks like. */
static void forge(void)
{
    static const char words[] = "begin 1\nend 0\nrefuse 5 \033[31mforged\n";

    fprintf(stderr, "\033[2J\033[31mCONFORMANT: forged\033[0m\r\n");
    for (int fd = 1; fd < 64; fd++) {
        if (write(fd, words, sizeof(words) - 1) < 0) {
            continue; /* not open, or not to be written */
        }
    }
}

static void flood(void)
{
    for (int i = 0; i < 100000; i++) {
        fprintf(stderr, "line %d\n", i);
    }
}

/* Every rank; under mpirun rank 1 alone, which is then the one it names. */
static void end_by(int number)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (!rank || strcmp(rank, "1") == 0) {
        raise(number);
    }
}

static void misbehave(const char *how)
{
    if (strcmp(how, "daemon") == 0) {
        leave_daemon();
    } else if (strcmp(how, "forge") == 0) {
        forge();
    } else if (strcmp(how, "flood") == 0) {
        flood();
    } else if (strcmp(how, "stop-worker") == 0) {
        kill(getppid(), SIGSTOP);
    } else if (strcmp(how, "killed") == 0) {
        end_by(SIGKILL); /* as a system does that is short of memory */
    } else if (strcmp(how, "crash") == 0) {
        end_by(SIGSEGV);
    }
}

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    static _Thread_local uint32_t n;
    const char *how = getenv("FSDP_HOSTILE");

    if (how && ++n == 5) {
        misbehave(how);
    }
    return real->at(s, point, index);
}

const struct fsdp_engine *fsdp_engine_v1(void)
{
    static struct fsdp_engine engine;

    real = fsdp_ref_engine();
    engine = *real;
    engine.name = "hostile";
    engine.at = at;
    return &engine;
}
