/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a daemon's page. */
#ifndef CV_PAGE_SETTINGS_H
#define CV_PAGE_SETTINGS_H

#include "common/config/config.h"

struct cv_page_settings {
  char *listen; /* HOST:PORT; NULL: no page */
  char *hosts;  /* NULL: only this machine's names */
  char *token;  /* file; NULL: a new token at each start */
};

/* The rules for these settings; `at` is their offset in a daemon's struct. */
#define CV_PAGE_RULES(at)                                                                                             \
  {.key = "page",                                                                                                     \
   .type = CV_CONFIG_TEXT,                                                                                            \
   .offset = (at) + offsetof(struct cv_page_settings, listen),                                                        \
   .help = "HOST:PORT of the page for browsers, on this machine only; port 0 lets the system choose (default: off)"}, \
      {.key = "page_hosts",                                                                                           \
       .type = CV_CONFIG_TEXT,                                                                                        \
       .offset = (at) + offsetof(struct cv_page_settings, hosts),                                                     \
       .help = "for containers: names by which browsers find the page; it may then listen on any address"},           \
  {                                                                                                                   \
    .key = "page_token", .type = CV_CONFIG_PATH, .offset = (at) + offsetof(struct cv_page_settings, token),           \
    .help = "file with the token of the page's link (default: a new token at each start)"                             \
  }

#endif
