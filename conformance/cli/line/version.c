/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.c - the version that CMake gave.
 */
#include "cli/line/version.h"

const char *version_text(void)
{
    return FSDP_CTS_VERSION;
}
