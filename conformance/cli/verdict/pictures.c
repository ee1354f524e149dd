/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pictures.c - reads the record of a case, asks the oracle, draws.
 */
#include "cli/verdict/pictures.h"
#include "cases/case_model.h"
#include "judge/report/picture.h"
#include "judge/report/report_file.h"
#include "run/worker/case_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int pictures_fail(struct fsdp_error *error, const char *path)
{
    error->status = FSDP_ERR_IO;
    snprintf(error->message, sizeof(error->message), "picture %.150s: %s", path,
             strerror(errno));
    return FSDP_ERR_IO;
}

static int draw_file(const char *folder, const char *name,
                     int (*draw)(FILE *, const struct expect *,
                                 const struct record *, struct fsdp_error *),
                     const struct expect *e, const struct record *r,
                     struct fsdp_error *error)
{
    char path[CASE_FOLDER_BYTES];
    struct report_file file;

    snprintf(path, sizeof(path), "%.4000s/%s", folder, name);
    FSDP_TRY(report_file_open(&file, path, error));
    return report_file_close(&file, draw(file.f, e, r, error));
}

static int draw_both(const char *folder, const struct run_case *c,
                     const struct case_model *m, const struct record *r,
                     struct fsdp_error *error)
{
    struct expect e = {0};
    int status = expect_make_idle(c, &m->model->model, &m->units.units,
                                  m->model->idle, &e);

    if (status != FSDP_OK) {
        error->status = status;
        snprintf(error->message, sizeof(error->message),
                 "the oracle has no rules for this case");
    }
    if (status == FSDP_OK) {
        status = draw_file(folder, "step.svg", picture_step, &e, r, error);
    }
    if (status == FSDP_OK) {
        status = draw_file(folder, "memory.svg", picture_memory, &e, r, error);
    }
    expect_release(&e);
    return status;
}

int pictures_write(const char *records, const struct run_case *c,
                   const struct text *text, const char *folder,
                   struct fsdp_error *error)
{
    char path[CASE_FOLDER_BYTES];
    struct case_model m = {0};
    struct record r = {0};
    int status;

    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return pictures_fail(error, folder);
    }
    case_folder(records, c, false, path);
    status = record_read(path, &r, error);
    if (status == FSDP_OK) {
        status = case_model_make(c, text->bytes, text->n, &m, error);
    }
    if (status == FSDP_OK) {
        status = draw_both(folder, c, &m, &r, error);
    }
    case_model_release(&m);
    record_release(&r);
    return status;
}
