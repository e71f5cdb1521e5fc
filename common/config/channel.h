/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a program's TLS connections: TLS files, timeout of a silent connection, and how long to wait for the
 * files. */
#ifndef CV_CONFIG_CHANNEL_H
#define CV_CONFIG_CHANNEL_H

#include "common/config/config.h"

struct cv_channel_settings {
  char *ca, *cert, *key, *denied, *crl;
  uint64_t silence_ms;
  uint64_t wait_ms; /* 0: do not wait */
};

/* Initialises a struct cv_tls_files, which borrows them. */
#define CV_CHANNEL_FILES(channel)                                                                     \
  {                                                                                                   \
    .ca = (channel)->ca, .cert = (channel)->cert, .key = (channel)->key, .denied = (channel)->denied, \
    .crl = (channel)->crl                                                                             \
  }

/* The rules for these settings; `at` is their offset in a daemon's struct. A requester's commands have their own rules
 * and use only the one for the wait. */
#define CV_CHANNEL_RULES(at)                                                                                      \
  CV_CHANNEL_FILE("tls.ca", (at) + offsetof(struct cv_channel_settings, ca), true, "PEM certificates of the CA"), \
      CV_CHANNEL_FILE("tls.cert", (at) + offsetof(struct cv_channel_settings, cert), true,                        \
                      "PEM certificate of this party"),                                                           \
      CV_CHANNEL_FILE("tls.key", (at) + offsetof(struct cv_channel_settings, key), true,                          \
                      "PEM private key, readable by its owner only"),                                             \
      CV_CHANNEL_FILE("tls.denied", (at) + offsetof(struct cv_channel_settings, denied), false,                   \
                      "file of revoked certificates: serial numbers in hex, one per line"),                       \
      CV_CHANNEL_FILE("tls.crl", (at) + offsetof(struct cv_channel_settings, crl), false, CV_CHANNEL_CRL_HELP),   \
      {.key = "silence",                                                                                          \
       .type = CV_CONFIG_TIME,                                                                                    \
       .offset = (at) + offsetof(struct cv_channel_settings, silence_ms),                                         \
       .low = 1000,                                                                                               \
       .high = 3600000,                                                                                           \
       .fallback = "20s",                                                                                         \
       .help = "time without an answer after which a connection is closed"},                                      \
      CV_CHANNEL_WAIT_RULE((at) + offsetof(struct cv_channel_settings, wait_ms))
#define CV_CHANNEL_CRL_HELP "PEM list of revoked certificates (CRL), signed by the CA; crl.pem of crowdveil pki"
#define CV_CHANNEL_WAIT_RULE(at)                                                                                     \
  {                                                                                                                  \
    .key = "wait_for_files", .type = CV_CONFIG_TIME, .offset = (at), .low = 0, .high = 86400000, .fallback = "none", \
    .help = "time to wait at the start for TLS files that do not exist yet"                                          \
  }
#define CV_CHANNEL_FILE(name, at, needed, about) \
  { .key = (name), .type = CV_CONFIG_PATH, .offset = (at), .required = (needed), .help = (about) }

enum { CV_CHANNEL_STOPPED = 0, CV_CHANNEL_ABSENT = 2 };

/*
 * For a program that may start before its TLS files exist; call before opening any. Checks for the files every 50 ms,
 * for at most `wait_ms`. Returns -1 to continue: all files are readable, or `wait_ms` is 0. Otherwise returns the exit
 * status: CV_CHANNEL_ABSENT after the timeout, CV_CHANNEL_STOPPED after SIGTERM or SIGINT. Prints one line on standard
 * error when waiting begins, and one if it fails. No other thread may run.
 */
CV_MUST_USE int cv_channel_wait(const char *program, const struct cv_channel_settings *channel);

#endif
