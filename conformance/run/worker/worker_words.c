/* SPDX-License-Identifier: Apache-2.0 */
/* worker_words.c - see worker_words.h. */
#include "run/worker/worker_words.h"
#include "run/process/whole_io.h"
#include "run/worker/worker.h"
#include "script/script.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

/* Closes the descriptor in ranks that are processes: they say nothing to the
 * supervisor. */
static void close_words(void)
{
    close(WORKER_WORDS_FD);
}

int worker_words_open(uint32_t descriptor, int *words)
{
    *words = descriptor == 0 ? STDOUT_FILENO : WORKER_WORDS_FD;
    return descriptor == 0 ||
                   (descriptor == WORKER_WORDS_FD &&
                    fcntl(WORKER_WORDS_FD, F_SETFD, FD_CLOEXEC) == 0 &&
                    pthread_atfork(NULL, NULL, close_words) == 0)
               ? FSDP_OK
               : FSDP_ERR_IO;
}

/* Signals that an engine sends itself meanwhile do not break it off. */
void worker_words_send(int words, const char *text)
{
    (void)whole_write(words, text, strlen(text)); /* or the supervisor is
                                                     gone */
}

void worker_words_reason(int words, const char *what, int status,
                         const struct fsdp_error *error)
{
    char line[sizeof(error->message) + 32];
    int n =
        snprintf(line, sizeof(line), "\n%s %s", what,
                 error->message[0] ? error->message : fsdp_status_text(status));

    for (int i = 1; i < n; i++) {
        line[i] = (char)(line[i] == '\n' ? ' ' : line[i]);
    }
    snprintf(line + n, sizeof(line) - (size_t)n, "\n");
    worker_words_send(words, line);
}

void worker_words_introduce(int words, const struct fsdp_engine *engine)
{
    char line[2048];
    size_t n = (size_t)snprintf(line, sizeof(line), "engine %.63s %.31s",
                                engine->name, engine->version);

    for (const char *const *c = engine->claims;
         *c && n + strlen(*c) + 3 < sizeof(line); c++) {
        n += (size_t)snprintf(line + n, sizeof(line) - n, " %s", *c);
    }
    snprintf(line + n, sizeof(line) - n, "\n");
    worker_words_send(words, line);
}

/* Waits by select: poll fails in a process whose limit of descriptors a rank
 * has lowered to none. */
int worker_words_wait(uint32_t descriptor)
{
    char heard = WORKER_GO_ON;

    while (descriptor != 0 && heard != WORKER_HEARD) {
        struct timeval second = {.tv_sec = 1};
        fd_set answer;
        ssize_t n;

        FD_ZERO(&answer);
        FD_SET(WORKER_WORDS_FD, &answer);
        n = select(WORKER_WORDS_FD + 1, &answer, NULL, NULL,
                   heard == WORKER_SUSPENDED ? NULL : &second);
        if (n == 0 && getppid() > 1) {
            (void)kill(getppid(), SIGCONT);
        } else if (n != 0) {
            n = n < 0 ? n : read(WORKER_WORDS_FD, &heard, 1);
            if (n == 0 || (n < 0 && errno != EINTR)) {
                return FSDP_ERR_ABORTED;
            }
        }
    }
    return FSDP_OK;
}

/* ---- The batch ------------------------------------------------------------
 */

int worker_read_batch(const char *path, struct run_case **out, size_t *n,
                      struct fsdp_error *error)
{
    FILE *f = fopen(path, "rbe");
    struct stat s;

    *out = NULL;
    if (!f || fstat(fileno(f), &s) != 0 || s.st_size <= 0) {
        snprintf(error->message, sizeof(error->message), "batch %.160s: %s",
                 path, strerror(errno));
        if (f) {
            fclose(f);
        }
        return FSDP_ERR_IO;
    }
    *n = (size_t)s.st_size / sizeof(**out);
    *out = malloc((size_t)s.st_size);
    if (!*out || fread(*out, sizeof(**out), *n, f) != *n) {
        fclose(f);
        snprintf(error->message, sizeof(error->message),
                 "batch %.160s: not readable", path);
        return FSDP_ERR_IO;
    }
    fclose(f);
    return FSDP_OK;
}

const char *worker_debug_file(const char *folder, char path[WORKER_DEBUG_BYTES])
{
    snprintf(path, WORKER_DEBUG_BYTES, "%s/debug", folder);
    return path;
}

int worker_read_scripts(const char *batch, struct fsdp_error *error)
{
    char path[4096];
    char *text = NULL;
    size_t room = 0;
    int status = FSDP_OK;
    FILE *f;

    snprintf(path, sizeof(path), "%s" WORKER_SCRIPTS, batch);
    f = fopen(path, "rbe");
    while (f && status == FSDP_OK && getdelim(&text, &room, '\0', f) > 0) {
        const struct case_script *s;

        status = script_give(text, &s, error);
    }
    if (f) {
        fclose(f);
    }
    free(text);
    return status;
}
