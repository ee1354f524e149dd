/* SPDX-License-Identifier: Apache-2.0 */
/* script_testing.c - see script_testing.h. */
#include "script/script_testing.h"
#include "testing/unit_testing.h"

#include "script/script_draw.h"

void script_test_parse(const char *text, struct script *s)
{
    struct fsdp_error error = {0};

    if (script_parse(text, s, &error) != FSDP_OK) {
        fail_msg("%s\n%s", error.message, text);
    }
}

void script_test_draw(uint32_t generator, uint64_t seed, struct script *s)
{
    struct fsdp_error error = {0};

    if (script_draw_by(generator, seed, s, &error) != FSDP_OK) {
        fail_msg("%s", error.message);
    }
}
