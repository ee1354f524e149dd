/* SPDX-License-Identifier: Apache-2.0 */
/* page_assets.h - plot.css, page.css and page.js, part of the program. */
#ifndef FSDP_CTS_PAGE_ASSETS_H
#define FSDP_CTS_PAGE_ASSETS_H

extern const char fsdp_cts_page_css[]; /* end with a 0 */
extern const char fsdp_cts_plot_css[];
extern const char fsdp_cts_page_js[];

#endif
