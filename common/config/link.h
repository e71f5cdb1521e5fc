/* SPDX-License-Identifier: Apache-2.0 */
/* What every daemon is told about its links: its TLS files, and how long the other end may be silent. */
#ifndef CV_CONFIG_LINK_H
#define CV_CONFIG_LINK_H

#include "common/config/config.h"

struct cv_link_settings {
  char *ca, *cert, *key, *denied;
  uint64_t silence_ms;
};

/* Initialises a struct cv_tls_files, which borrows them. */
#define CV_LINK_FILES(link) \
  { .ca = (link)->ca, .cert = (link)->cert, .key = (link)->key, .denied = (link)->denied }

/* The rules for these settings, which lie at the offset `at` of the daemon's. */
#define CV_LINK_RULES(at)                                                                                              \
  CV_LINK_FILE("tls.ca", (at) + offsetof(struct cv_link_settings, ca), true, "PEM certificates of the CA"),            \
      CV_LINK_FILE("tls.cert", (at) + offsetof(struct cv_link_settings, cert), true, "PEM certificate of this party"), \
      CV_LINK_FILE("tls.key", (at) + offsetof(struct cv_link_settings, key), true,                                     \
                   "PEM private key, readable by its owner only"),                                                     \
      CV_LINK_FILE("tls.denied", (at) + offsetof(struct cv_link_settings, denied), false,                              \
                   "serial numbers in hex, one a line, that are refused"),                                             \
  {                                                                                                                    \
    .key = "silence", .type = CV_CONFIG_TIME, .offset = (at) + offsetof(struct cv_link_settings, silence_ms),          \
    .low = 1000, .high = 3600000, .fallback = "20s",                                                                   \
    .help = "time after which a connection whose other end does not answer is given up"                                \
  }
#define CV_LINK_FILE(name, at, needed, about) \
  { .key = (name), .type = CV_CONFIG_PATH, .offset = (at), .required = (needed), .help = (about) }

#endif
