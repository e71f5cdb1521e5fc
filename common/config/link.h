/* SPDX-License-Identifier: Apache-2.0 */
/* What every daemon is told about its links: its TLS files, and how long these and the other end are waited for. */
#ifndef CV_CONFIG_LINK_H
#define CV_CONFIG_LINK_H

#include "common/config/config.h"

struct cv_link_settings {
  char *ca, *cert, *key, *denied;
  uint64_t silence_ms;
  uint64_t wait_ms; /* 0: for no file */
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
      {.key = "silence",                                                                                               \
       .type = CV_CONFIG_TIME,                                                                                         \
       .offset = (at) + offsetof(struct cv_link_settings, silence_ms),                                                 \
       .low = 1000,                                                                                                    \
       .high = 3600000,                                                                                                \
       .fallback = "20s",                                                                                              \
       .help = "time after which a connection whose other end does not answer is given up"},                           \
      CV_LINK_WAIT_RULE((at) + offsetof(struct cv_link_settings, wait_ms))
#define CV_LINK_WAIT_RULE(at)                                                                                        \
  {                                                                                                                  \
    .key = "wait_for_files", .type = CV_CONFIG_TIME, .offset = (at), .low = 0, .high = 86400000, .fallback = "none", \
    .help = "time to wait at the start for TLS files that are not there yet"                                         \
  }
#define CV_LINK_FILE(name, at, needed, about) \
  { .key = (name), .type = CV_CONFIG_PATH, .offset = (at), .required = (needed), .help = (about) }

enum { CV_LINK_STOPPED = 0, CV_LINK_ABSENT = 2 };

/*
 * For a program that may start before its TLS files exist, and before it opens any: looks for them every 50 ms, for
 * `wait_ms` at most. Returns -1 to go on: all are there and can be read, or `wait_ms` is 0. Else a daemon's exit
 * status: CV_LINK_ABSENT if the time is over, CV_LINK_STOPPED if SIGTERM or SIGINT came. One line on standard error
 * when it begins to wait, and one if it ends so. No other thread may run.
 */
CV_MUST_USE int cv_link_wait(const char *program, const struct cv_link_settings *link);

#endif
