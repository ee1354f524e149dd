/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_write.c - writes a planned safetensors file so that its path
 * holds the old file or the whole new one at every moment.
 */
#include "safetensors_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <fsdp/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARTIAL ".partial"

static int refuse_system(const struct safetensors_report *report,
                         const char *what)
{
    return safetensors_refuse(report, FSDP_ERR_IO, "%s: %s", what,
                              strerror(errno));
}

static int write_bytes(const struct safetensors_report *report, int fd,
                       const void *p, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        const ssize_t put = write(fd, (const char *)p + done, bytes - done);

        if (put >= 0) {
            done += (size_t)put;
        } else if (errno != EINTR) {
            return refuse_system(report, "cannot write");
        }
    }
    return FSDP_OK;
}

/* Most tensors of a record are a few bytes: a call for each would cost more
 * than all the rest. */
struct gathered {
    char bytes[1 << 14];
    size_t n;
};

static int flush(const struct safetensors_report *report, int fd,
                 struct gathered *g)
{
    const size_t n = g->n;

    g->n = 0;
    return write_bytes(report, fd, g->bytes, n);
}

static int put_bytes(const struct safetensors_report *report, int fd,
                     struct gathered *g, const void *p, size_t bytes)
{
    if (bytes > sizeof(g->bytes) - g->n) {
        FSDP_TRY(flush(report, fd, g));
    }
    if (bytes > sizeof(g->bytes)) {
        return write_bytes(report, fd, p, bytes);
    }
    if (bytes > 0) {
        memcpy(g->bytes + g->n, p, bytes);
        g->n += bytes;
    }
    return FSDP_OK;
}

static int write_plan(const struct safetensors_report *report, int fd,
                      const struct safetensors_plan *plan, bool sync)
{
    struct gathered g; /* 16 KB: not filled with zeroes */
    int status;

    g.n = 0;
    status = put_bytes(report, fd, &g, plan->head, plan->head_bytes);
    for (size_t i = 0; status == FSDP_OK && i < plan->n; i++) {
        const struct safetensors_tensor *const tensor = plan->slots[i].tensor;

        status = put_bytes(report, fd, &g, tensor->data, tensor->bytes);
    }
    if (status == FSDP_OK) {
        status = flush(report, fd, &g);
    }
    if (status == FSDP_OK && sync && fsync(fd) != 0) {
        status = refuse_system(report, "cannot flush");
    }
    return status;
}

static int write_partial(const struct safetensors_report *report,
                         const char *partial,
                         const struct safetensors_plan *plan, bool sync)
{
    const int fd = open(
        partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    int status;

    if (fd < 0) {
        return refuse_system(report, "cannot create its " PARTIAL);
    }
    status = write_plan(report, fd, plan, sync);
    if (close(fd) != 0 && status == FSDP_OK) {
        status = refuse_system(report, "cannot close its " PARTIAL);
    }
    if (status == FSDP_OK && rename(partial, report->path) != 0) {
        status = refuse_system(report, "cannot rename its " PARTIAL);
    }
    if (status != FSDP_OK) {
        (void)unlink(partial);
    }
    return status;
}

/* A rename is only durable once the directory is; SCRATCH holds the path. */
static int sync_directory(const struct safetensors_report *report,
                          char *scratch)
{
    char *const slash = strrchr(scratch, '/');
    int status = FSDP_OK;
    int fd;

    if (!slash) {
        fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } else {
        slash[slash == scratch ? 1 : 0] = '\0';
        fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0) {
        return refuse_system(report, "cannot open its directory");
    }
    if (fsync(fd) != 0) {
        status = refuse_system(report, "cannot flush its directory");
    }
    (void)close(fd);
    return status;
}

int safetensors_write(const char *path, const struct safetensors_tensor *t,
                      size_t n, const struct safetensors_meta *meta,
                      size_t n_meta, bool sync, char *why, size_t why_bytes)
{
    const struct safetensors_report report = {path, why, why_bytes};
    const size_t room = strlen(path) + sizeof(PARTIAL);
    struct safetensors_plan plan;
    char *partial = NULL;
    int status = safetensors_plan_make(&plan, t, n, meta, n_meta, &report);

    if (status != FSDP_OK) {
        goto out;
    }
    partial = malloc(room);
    if (!partial) {
        status = safetensors_refuse(&report, FSDP_ERR_NOMEM, "out of memory");
        goto out;
    }
    snprintf(partial, room, "%s" PARTIAL, path);
    status = write_partial(&report, partial, &plan, sync);
    if (status == FSDP_OK && sync) {
        status = sync_directory(&report, partial);
    }
out:
    free(partial);
    safetensors_plan_free(&plan);
    return status;
}
