/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_ask.c - a process that loads an engine, and says what it is. It may
 * say anything: so it says it in a fixed size, and its texts are ended here.
 */
#include "run/worker/engine_ask.h"
#include "run/process/whole_io.h"
#include "run/worker/engine_load.h"
#include "run/worker/rank_limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CLAIMS = 63,
    CLAIM_BYTES = 32
};

struct words {
    struct fsdp_engine engine; /* whether its functions are NULL */
    int status;
    struct fsdp_error error;
    char name[64], version[32];
    char claim[CLAIMS][CLAIM_BYTES];
    uint32_t n_claims;
};

/* ---- In the process that has the engine -------------------------------- */

static void be_asked(const char *name, struct notary *notary, int fd)
{
    struct words *w = calloc(1, sizeof(*w));
    static const char *const null[] = {"/dev/null", NULL};
    const struct fsdp_engine *e = NULL;
    const char *why = NULL;

    if (!w || !limits_enter(notary, 0, null, &why)) {
        _exit(EXIT_FAILURE);
    }
    w->status = engine_load(name, &e, &w->error);
    if (w->status == FSDP_OK) {
        w->engine = *e;
        snprintf(w->name, sizeof(w->name), "%s", e->name);
        snprintf(w->version, sizeof(w->version), "%s", e->version);
        while (w->n_claims < CLAIMS && e->claims[w->n_claims]) {
            snprintf(w->claim[w->n_claims], CLAIM_BYTES, "%s",
                     e->claims[w->n_claims]);
            w->n_claims++;
        }
    }
    (void)whole_write(fd, w, sizeof(*w));
    _exit(EXIT_SUCCESS); /* without running any more code of the engine */
}

/* ---- In the one that asks ---------------------------------------------- */

static const struct fsdp_engine *describe(struct words *w)
{
    static const char *claims[CLAIMS + 1];

    w->name[sizeof(w->name) - 1] = '\0';
    w->version[sizeof(w->version) - 1] = '\0';
    for (uint32_t i = 0; i < CLAIMS && i < w->n_claims; i++) {
        w->claim[i][CLAIM_BYTES - 1] = '\0';
        claims[i] = w->claim[i];
    }
    w->engine.name = w->name;
    w->engine.version = w->version;
    w->engine.claims = claims;
    return &w->engine;
}

static int fail(struct fsdp_error *error, int status, const char *text)
{
    error->status = status;
    snprintf(error->message, sizeof(error->message), "%s", text);
    return status;
}

/* The process exits with 128 and the number of a signal, as a shell does, if
 * that has ended its child. */
static int say_ending(const char *name, int ending, struct fsdp_error *error)
{
    const int code = WEXITSTATUS(ending);
    const int signal = WIFSIGNALED(ending) ? WTERMSIG(ending)
                       : code > 128        ? code - 128
                                           : 0;

    error->status = FSDP_ERR_INTERNAL;
    snprintf(error->message, sizeof(error->message),
             "engine %.100s: the process that loaded it %s %d", name,
             signal != 0 ? "was ended by signal" : "exited with",
             signal != 0 ? signal : code);
    return error->status;
}

static int ask(const char *name, struct words *w, struct fsdp_error *error)
{
    struct notary_notes notes; /* each rank asks for the same again */
    const char *why;
    struct notary notary;
    int two[2];
    int ending = 0;
    bool heard;
    pid_t pid;

    if (!notary_start(&notary, &(struct notary_task){.record = NULL})) {
        return fail(error, FSDP_ERR_NOMEM, "no process could be started");
    }
    if (pipe(two) != 0) {
        (void)notary_stop(&notary, &notes, &why);
        return fail(error, FSDP_ERR_NOMEM, "no pipe could be made");
    }
    pid = fork();
    if (pid == 0) {
        close(two[0]);
        be_asked(name, &notary, two[1]);
    }
    close(two[1]);
    heard = pid > 0 && whole_read(two[0], w, sizeof(*w));
    close(two[0]);
    while (pid > 0 && waitpid(pid, &ending, 0) < 0 && errno == EINTR) {
    }
    (void)notary_stop(&notary, &notes, &why);
    if (pid < 0) {
        return fail(error, FSDP_ERR_NOMEM, "no process could be started");
    }
    return heard ? FSDP_OK : say_ending(name, ending, error);
}

int engine_ask(const char *name, const struct fsdp_engine **out,
               struct fsdp_error *error)
{
    static struct words words;

    *out = NULL;
    FSDP_TRY(ask(name, &words, error));
    if (words.status != FSDP_OK) {
        *error = words.error;
        error->message[sizeof(error->message) - 1] = '\0';
        error->where[sizeof(error->where) - 1] = '\0';
        return words.status;
    }
    *out = describe(&words);
    return FSDP_OK;
}
