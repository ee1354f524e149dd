/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_load.c - finds an engine and checks that it can be driven at all.
 */
#include "run/worker/engine_load.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Built-in engines are linked, not included: they are seen through the
 * contract alone, like any other. */
const struct fsdp_engine *fsdp_ref_engine(void);
const struct fsdp_engine *fsdp_impl_engine(void);
const struct fsdp_engine *fsdp_unsharded_engine(void);

const struct engine_entry engine_list[] = {
    {"ref", "the reference: plain loops, nothing runs ahead", fsdp_ref_engine},
    {"impl", "the optimized one: streams, prefetch, SIMD", fsdp_impl_engine},
    {"unsharded", "the baseline: all ranks played in one process",
     fsdp_unsharded_engine},
    {NULL, NULL, NULL},
};

__attribute__((format(printf, 3, 4))) static int
refuse(struct fsdp_error *error, int status, const char *format, ...)
{
    va_list arguments;

    error->status = status;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof(error->message), format, arguments);
    va_end(arguments);
    return status;
}

/* The first fields of the struct, which every plug-in of this ABI has. */
#define FIRST_SIZE offsetof(struct fsdp_engine, set)

static int check_engine(const char *name, const struct fsdp_engine *e,
                        struct fsdp_error *error)
{
    if (!e) {
        return refuse(error, FSDP_ERR_MISMATCH,
                      "engine %s: fsdp_engine_v1 returned NULL", name);
    }
    if (e->size < FIRST_SIZE) {
        return refuse(error, FSDP_ERR_MISMATCH,
                      "engine %s: its struct has %u bytes, this suite needs "
                      "%zu: build it against this version's headers",
                      name, e->size, FIRST_SIZE);
    }
    if (e->abi != FSDP_ABI_VERSION) {
        return refuse(error, FSDP_ERR_MISMATCH,
                      "engine %s: ABI version %u, this suite has %u", name,
                      e->abi, FSDP_ABI_VERSION);
    }
    if (!e->name || !e->version || !e->claims || !e->shard || !e->pieces ||
        !e->destroy) {
        return refuse(error, FSDP_ERR_MISMATCH,
                      "engine %s: name, version, claims, shard, pieces and "
                      "destroy must not be NULL",
                      name);
    }
    return FSDP_OK;
}

int engine_trains(const char *name, const struct fsdp_engine *e,
                  struct fsdp_error *error)
{
    const struct {
        const char *function;
        bool is_there;
    } needed[] = {{"at", e->at != NULL},
                  {"param", e->param != NULL},
                  {"grad", e->grad != NULL},
                  {"set_gradient_sync", e->set_gradient_sync != NULL},
                  {"step", e->step != NULL},
                  {"zero_grad", e->zero_grad != NULL}};

    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (!needed[i].is_there) {
            return refuse(error, FSDP_ERR_UNSUPPORTED,
                          "engine %s: %s is NULL, so that it cannot train; "
                          "--level layout asks for shard and pieces alone",
                          name, needed[i].function);
        }
    }
    return FSDP_OK;
}

/* Completes an engine that was built against earlier headers by NULL for later
 * functions. The copy belongs to this thread. */
static int complete(const struct fsdp_engine **e, struct fsdp_error *error)
{
    enum {
        MOST = 16 /* plug-ins in one process */
    };
    static _Thread_local struct fsdp_engine completed[MOST];
    static _Thread_local const struct fsdp_engine *of[MOST];
    uint32_t i = 0;

    while (i < MOST && of[i] && of[i] != *e) {
        i++;
    }
    if (i == MOST) {
        return refuse(error, FSDP_ERR_NOMEM,
                      "more than %d plug-ins of earlier headers", (int)MOST);
    }
    of[i] = *e;
    memset(&completed[i], 0, sizeof(completed[i]));
    memcpy(&completed[i], *e, (*e)->size);
    *e = &completed[i];
    return FSDP_OK;
}

static int load_plugin(const char *path, const struct fsdp_engine **out,
                       struct fsdp_error *error)
{
    const struct fsdp_engine *(*get)(void) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol;

    if (!library) {
        return refuse(error, FSDP_ERR_IO, "engine %s", dlerror());
    }
    symbol = dlsym(library, "fsdp_engine_v1");
    if (!symbol) {
        dlclose(library);
        return refuse(error, FSDP_ERR_MISMATCH,
                      "engine %s: exports no fsdp_engine_v1", path);
    }
    memcpy(&get, &symbol, sizeof(get)); /* ISO C has no such cast */
    *out = get();
    FSDP_TRY(check_engine(path, *out, error));
    return *out && (*out)->size < sizeof(**out) ? complete(out, error)
                                                : FSDP_OK;
}

bool engine_is_path(const char *name)
{
    const size_t n = strlen(name);

    return strchr(name, '/') || (n > 3 && strcmp(name + n - 3, ".so") == 0);
}

int engine_load(const char *name, const struct fsdp_engine **out,
                struct fsdp_error *error)
{
    char known[128] = "";

    *out = NULL;
    if (engine_is_path(name)) {
        return load_plugin(name, out, error);
    }
    for (const struct engine_entry *e = engine_list; e->name; e++) {
        size_t used = strlen(known);
        if (strcmp(e->name, name) == 0) {
            *out = e->get();
            return check_engine(name, *out, error);
        }
        snprintf(known + used, sizeof(known) - used, "%s, ", e->name);
    }
    return refuse(error, FSDP_ERR_INVALID,
                  "unknown engine '%.60s'; there are: %sor the path of a .so",
                  name, known);
}
