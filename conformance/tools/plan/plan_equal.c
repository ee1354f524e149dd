/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_equal.c - models that are made for a question: equal units.
 */
#include "tools/plan/plan_equal.h"
#include "record/record_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct plan_ask plan_ask_for(const struct plan_model *m, uint32_t ranks,
                             uint32_t strategy, uint32_t precision)
{
    return (struct plan_ask){
        .c = {.strategy = strategy,
              .ranks = ranks,
              .replicas = strategy == CASE_NO_SHARD ? ranks : 1,
              .optimizer = FSDP_OPTIMIZER_ADAMW,
              .microbatches = 1,
              .sync = {1},
              .steps = 1,
              .precision = precision},
        .model = &m->model,
        .units = &m->units.units};
}

int plan_equal_model(uint64_t elements, uint32_t units, struct plan_model *out,
                     struct fsdp_error *error)
{
    char text[512];

    memset(out, 0, sizeof(*out));
    if (units == 0 || elements % units != 0) {
        return record_fail(error, FSDP_ERR_INVALID, "plan",
                           "%u units of %" PRIu64 " elements are not equal",
                           units, elements);
    }
    snprintf(
        text, sizeof(text),
        "{\"version\":1,\"name\":\"equal\",\"source\":\"\",\"parts\":["
        "{\"times\":%u,\"modules\":[{\"name\":\"u{i}\",\"class\":\"Unit\","
        "\"unit\":true,\"checkpoint\":true,\"flops\":%" PRIu64
        ",\"attention\":0,\"parameters\":[{\"name\":\"w\",\"dtype\":\"f32\","
        "\"shape\":[%" PRIu64 "]}]}]}],\"calls\":[]}",
        units, 2 * (elements / units), elements / units);
    return plan_model_of_text(text, strlen(text), "equal units", out, error);
}

int plan_equal_units(uint64_t elements, uint32_t units, uint32_t ranks,
                     uint32_t strategy, struct plan_bytes *out,
                     struct fsdp_error *error)
{
    struct plan_model m;
    struct plan_ask ask;
    int status = plan_equal_model(elements, units, &m, error);

    memset(out, 0, sizeof(*out));
    if (status == FSDP_OK) {
        ask = plan_ask_for(&m, ranks, strategy, CASE_BF16_REDUCE);
        status = plan_bytes_make(&ask, out, error);
    }
    plan_model_release(&m);
    return status;
}
