/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of `crowdveil`, one row each in the table of main.c. argv[0] is the command's name. A command prints at
 * most one line about an error and returns the exit status: 0; 1 for a failure; 2 for wrong usage or configuration.
 */
#ifndef CV_LAUNCHER_COMMAND_H
#define CV_LAUNCHER_COMMAND_H

#include <jansson.h>

#include "common/base/err.h"
#include "common/config/command.h"
#include "prepare/prepare.h"

int cv_launcher_plan(int argc, char **argv);
int cv_launcher_pki(int argc, char **argv);
int cv_launcher_submit(int argc, char **argv);
int cv_launcher_watch(int argc, char **argv);
int cv_launcher_cancel(int argc, char **argv);
int cv_launcher_purge(int argc, char **argv);
int cv_launcher_status(int argc, char **argv);
int cv_launcher_export(int argc, char **argv);
int cv_launcher_ledger(int argc, char **argv);
int cv_launcher_backup(int argc, char **argv);
int cv_launcher_recover(int argc, char **argv);
int cv_launcher_seal(int argc, char **argv);
int cv_launcher_store(int argc, char **argv);
int cv_launcher_doctor(int argc, char **argv);
int cv_launcher_audit(int argc, char **argv);
int cv_launcher_compare(int argc, char **argv);
int cv_launcher_replay(int argc, char **argv);
int cv_launcher_verify(int argc, char **argv);
int cv_launcher_check(int argc, char **argv);
int cv_launcher_profiles(int argc, char **argv);
int cv_launcher_up(int argc, char **argv);
/* Internal: runs a program that gets SIGTERM when its parent process ends. */
int cv_launcher_tether(int argc, char **argv);

/* The rule of --json for commands that print one object in place of text; `at` is the offset of a bool. */
#define CV_JSON_RULE(at)                                                        \
  {                                                                             \
    .key = "json", .type = CV_CONFIG_BOOL, .offset = (at), .fallback = "false", \
    .help = "print one JSON object in place of text"                            \
  }
/* Prints the object on one line and returns `status`. Takes ownership; NULL means that memory was short: status 1. */
int cv_launcher_print_json(const struct cv_config_table *table, json_t *object, int status);

/* Parses a campaign number, 1 or more, into *ret. CV_ERR_INVALID otherwise. */
CV_MUST_USE enum cv_err cv_launcher_number(const char *word, uint64_t *ret, struct cv_why *why);

/* For the tables of commands with a campaign file: checks it for --check-config. */
CV_MUST_USE enum cv_err cv_launcher_check_file(const void *settings, const char *file, struct cv_why *why);

/* cv_choose_prepare(), with a line on standard error about what was chosen. */
CV_MUST_USE enum cv_err cv_launcher_prepare(const struct cv_config_table *table, const char *path, uint64_t seed,
                                            struct cv_prepared *ret, struct cv_why *why);
/* The same; `brokers` as in cv_choose_prepare(). */
CV_MUST_USE enum cv_err cv_launcher_prepare_for(const struct cv_config_table *table, const char *path, uint64_t seed,
                                                uint32_t brokers, struct cv_prepared *ret, struct cv_why *why);

#endif
