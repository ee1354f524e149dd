/* SPDX-License-Identifier: Apache-2.0 */
/* strict.c - see strict.h. */
#include "tools/track/strict.h"

json_t *strict_load(struct record_json *j, const char *text, size_t bytes)
{
    json_error_t error;
    json_t *const root =
        json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);

    if (!root && json_error_code(&error) == json_error_out_of_memory) {
        j->status =
            record_fail(j->error, FSDP_ERR_NOMEM, "track", "out of memory");
    } else if (!root) {
        (void)record_refuse(j, record_field("no JSON"), "%.90s", error.text);
    }
    return root;
}
