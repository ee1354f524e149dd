/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_log.c - see call_log.h.
 */
#include "tools/probes/preload/call_log.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FSDP_PROBE_STEP is N or M+N: M calls come first, then N make a step. */
static void read_step(struct call_log *c)
{
    const char *text = secure_getenv("FSDP_PROBE_STEP");
    char *end = NULL;
    if (!text || *text == '\0') {
        return;
    }
    int kept = errno;
    errno = 0;
    unsigned long long every = strtoull(text, &end, 10);
    unsigned long long first = 0;
    bool is_right = *text >= '0' && *text <= '9';
    if (is_right && *end == '+' && end[1] >= '0' && end[1] <= '9') {
        first = every;
        every = strtoull(end + 1, &end, 10);
    }
    if (!is_right || *end != '\0' || errno != 0 || every == 0) {
        probe_complain("FSDP_PROBE_STEP is '%.40s': N or M+N was expected, as "
                       "in 2+30; no steps are marked",
                       text);
        every = 0;
    }
    errno = kept;
    c->first = first;
    c->every = every;
}

bool call_log_open(struct call_log *c, const struct probe_head *head)
{
    *(void **)(void *)&c->heap_mark = dlsym(RTLD_DEFAULT, "fsdp_probe_mark");
    read_step(c);
    return probe_log_open(&c->log, head);
}

void call_log_mark(struct call_log *c, const char *name)
{
    struct probe_line line;
    if (c->log.state != PROBE_LOG_OPEN) {
        return;
    }
    probe_line_begin(&line, "mark");
    probe_line_u64(&line, "at", c->calls);
    probe_line_text(&line, "name", name);
    probe_log_write(&c->log, &line);
    if (c->heap_mark) {
        c->heap_mark(name);
    }
}

static void add_known(struct probe_line *line, const char *key, int64_t n)
{
    if (n < 0) {
        probe_line_null(line, key);
    } else {
        probe_line_u64(line, key, (uint64_t)n);
    }
}

uint64_t call_log_call(struct call_log *c, const struct probe_call *call)
{
    static const char *const flag[] = {"false", "true"};
    struct probe_line line;
    if (c->every > 0 && c->calls >= c->first &&
        (c->calls - c->first) % c->every == 0) {
        char name[48];
        snprintf(name, sizeof(name), "step %llu",
                 (unsigned long long)((c->calls - c->first) / c->every));
        call_log_mark(c, name);
    }
    probe_line_begin(&line, "collective");
    probe_line_u64(&line, "seq", c->calls);
    probe_line_text(&line, "kind", probe_kind_name(call->kind));
    add_known(&line, "comm", call->comm);
    probe_line_text(&line, "dtype", probe_dtype_name(call->dtype));
    add_known(&line, "n", call->n);
    add_known(&line, "total", call->total);
    add_known(&line, "bytes", call->bytes);
    add_known(&line, "root", call->root);
    if (!call->op) {
        probe_line_null(&line, "op");
    } else {
        probe_line_text(&line, "op", call->op);
    }
    probe_line_add(&line, ",\"in_place\":%s",
                   call->in_place < 0 ? "null" : flag[call->in_place != 0]);
    probe_line_text(&line, "mode", probe_mode_name(call->mode));
    probe_line_text(&line, "call", call->call);
    probe_log_write(&c->log, &line);
    return c->calls++;
}

void call_log_end(struct call_log *c, uint32_t how)
{
    struct probe_line line;
    if (c->log.state != PROBE_LOG_OPEN || c->log.pid != getpid()) {
        return;
    }
    probe_line_begin(&line, "end");
    probe_line_text(&line, "how", probe_how_name(how));
    probe_line_u64(&line, "collectives", c->calls);
    probe_line_u64(&line, "sends", c->sends);
    probe_line_u64(&line, "send_bytes", c->send_bytes);
    probe_line_u64(&line, "puts", c->puts);
    probe_line_u64(&line, "put_bytes", c->put_bytes);
    probe_log_write(&c->log, &line);
    probe_log_close(&c->log);
}
