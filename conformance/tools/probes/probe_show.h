/* SPDX-License-Identifier: Apache-2.0 */
/* probe_show.h - prints logs of probes, for people and as JSON. */
#ifndef FSDP_CTS_PROBE_SHOW_H
#define FSDP_CTS_PROBE_SHOW_H

#include "tools/probes/probe.h"

#include <jansson.h>

/* Ranks that show the same are printed once. NOMEM. */
int probe_show_text(const struct probe_logs *logs);
/* NULL: out of memory. */
json_t *probe_show_json(const struct probe_logs *logs);

#endif
