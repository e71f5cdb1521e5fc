/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a daemon: the settings that every party has, and what runs instead of the daemon if an option asks for
 * it (a probe, an examination), or before it (the wait for TLS files).
 */
#ifndef CV_DAEMON_PROGRAM_H
#define CV_DAEMON_PROGRAM_H

#include "common/config/channel.h"
#include "common/config/config.h"
#include "common/daemon/backup_command.h"
#include "common/daemon/logging.h"
#include "common/sandbox/sandbox.h"

/* A member of each party's settings. */
struct cv_daemon_settings {
  char *admin;  /* Unix socket of the admin endpoint; NULL: none */
  char *audit;  /* file of the audit log; NULL: none */
  bool probe;   /* ask a running daemon for its health instead of running */
  char *backup; /* ask a running daemon for a copy of its database instead of running, and keep it here; or NULL */
  char *unsafe_clock; /* file of a test's clock (base/clock.h); NULL: the system's clocks */
  struct cv_logging_settings log;
  struct cv_channel_settings channel;
  struct cv_sandbox_settings sandbox;
};

/* The rules for these settings; `at` is their offset in the party's struct. */
#define CV_DAEMON_RULES(at)                                                                                         \
  {.key = "admin",                                                                                                  \
   .type = CV_CONFIG_PATH,                                                                                          \
   .offset = (at) + offsetof(struct cv_daemon_settings, admin),                                                     \
   .help = "Unix socket of the admin endpoint: /health, /readyz, /metrics, /log-level and /backup"},                \
      {.key = "audit",                                                                                              \
       .type = CV_CONFIG_PATH,                                                                                      \
       .offset = (at) + offsetof(struct cv_daemon_settings, audit),                                                 \
       .help = "file to which a line is appended for each act of a requester or operator"},                         \
      {.key = "probe",                                                                                              \
       .type = CV_CONFIG_BOOL,                                                                                      \
       .offset = (at) + offsetof(struct cv_daemon_settings, probe),                                                 \
       .fallback = "false",                                                                                         \
       .is_option = true,                                                                                           \
       .help = "ask the running daemon for its health; exit with status 0 if it is healthy"},                       \
      {.key = "backup",                                                                                             \
       .type = CV_CONFIG_PATH,                                                                                      \
       .offset = (at) + offsetof(struct cv_daemon_settings, backup),                                                \
       .is_option = true,                                                                                           \
       .help = "ask the running daemon for a copy of its database, check it, write it to this new file, and exit"}, \
      {.key = "unsafe_clock",                                                                                       \
       .type = CV_CONFIG_PATH,                                                                                      \
       .offset = (at) + offsetof(struct cv_daemon_settings, unsafe_clock),                                          \
       .help = "UNSAFE, for tests on one machine: the file that says what time it is"},                             \
      CV_LOGGING_RULES((at) + offsetof(struct cv_daemon_settings, log)),                                            \
      CV_CHANNEL_RULES((at) + offsetof(struct cv_daemon_settings, channel)),                                        \
      CV_SANDBOX_RULES((at) + offsetof(struct cv_daemon_settings, sandbox))

struct cv_daemon_program {
  const struct cv_config_table *table;
  size_t common; /* offset of the struct cv_daemon_settings in the party's */
  /* Does what an option asks for instead of running, and returns the exit status; -1: run the daemon. May be NULL. */
  int (*instead)(const void *settings);
  /* For --backup. */
  cv_backup_check_fn *check_copy;
  /* Runs the daemon and returns the exit status. */
  int (*run)(const void *settings);
};

/* The main function: reads the settings, runs the program and frees the settings. The caller has set the fields of
 * `settings` that have no default. Returns the exit status. */
CV_MUST_USE int cv_daemon_main(const struct cv_daemon_program *program, int argc, char **argv, void *settings);

#endif
