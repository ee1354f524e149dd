/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_assets.c - the style and the script are part of the program, so that
 * a page needs no other file and the program no path.
 */
#include "judge/draw/page_assets.h"

__asm__(".section .rodata\n"
        ".global fsdp_cts_page_css\n"
        "fsdp_cts_page_css:\n"
        ".incbin \"" FSDP_PAGE_CSS "\"\n"
        ".byte 0\n"
        ".global fsdp_cts_plot_css\n"
        "fsdp_cts_plot_css:\n"
        ".incbin \"" FSDP_PLOT_CSS "\"\n"
        ".byte 0\n"
        ".global fsdp_cts_page_js\n"
        "fsdp_cts_page_js:\n"
        ".incbin \"" FSDP_PAGE_JS "\"\n"
        ".byte 0\n"
        ".previous\n");
