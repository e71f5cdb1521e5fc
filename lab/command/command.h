/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `crowdveil-lab`, as in deploy/launcher/command.h: one file each, one row in the table of main.c. */
#ifndef CV_LAB_COMMAND_H
#define CV_LAB_COMMAND_H

#include <jansson.h>
#include <stdio.h>

#include "common/config/command.h"
#include "common/config/escape.h"
#include "common/config/standard.h"

/* The rows --seed and --jobs, both uint64_t, of every command that uses randomness. */
#define CV_LAB_CHANCE_RULES(seed_at, jobs_at)                                                             \
  {.key = "seed",                                                                                         \
   .type = CV_CONFIG_WHOLE,                                                                               \
   .offset = (seed_at),                                                                                   \
   .low = 0,                                                                                              \
   .high = 9e15,                                                                                          \
   .fallback = "1",                                                                                       \
   .help = "seed of all randomness; the result does not depend on --jobs"},                               \
  {                                                                                                       \
    .key = "jobs", .type = CV_CONFIG_WHOLE, .offset = (jobs_at), .low = 0, .high = 1024, .fallback = "0", \
    .help = "number of threads; 0: one per processor"                                                     \
  }

/* 2 for errors in the user's input, also for an output file that already exists; 1 for all others. */
static inline int cv_lab_exit_status(enum cv_err err) {
  return err == CV_ERR_EXISTS ? 2 : cv_config_exit_status(err);
}

/* Prints the message of `why`, or the error's own text if that is empty, and returns the exit status. */
static inline int cv_lab_fail(const struct cv_config_table *table, enum cv_err err, const struct cv_why *why) {
  return cv_command_fail(table, cv_lab_exit_status(err), "%s", why->text[0] == '\0' ? cv_err_text(err) : why->text);
}

/* The rule of --json for commands that print objects in place of text; `at` is the offset of a bool. */
#define CV_LAB_JSON_RULE(at)                                                    \
  {                                                                             \
    .key = "json", .type = CV_CONFIG_BOOL, .offset = (at), .fallback = "false", \
    .help = "print one JSON object per line in place of text"                   \
  }
/* Prints the object on one line of standard output and releases it; NULL: there was no memory for it. What cannot be
 * printed is told at the end of the program (standard.h). */
static inline void cv_lab_print_object(json_t *object) {
  if (object != NULL && json_dump_callback(object, cv_escape_json, stdout, JSON_COMPACT) == 0) {
    (void)putchar('\n');
  } else if (ferror(stdout) == 0) {
    cv_standard_lose();
  }
  json_decref(object);
}

int cv_lab_audit(int argc, char **argv);
int cv_lab_export(int argc, char **argv);
int cv_lab_join(int argc, char **argv);
int cv_lab_list(int argc, char **argv);
int cv_lab_report(int argc, char **argv);
int cv_lab_run(int argc, char **argv);

#endif
