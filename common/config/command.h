/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of a program that has several: options among other words, and one line about what went wrong. */
#ifndef CV_CONFIG_COMMAND_H
#define CV_CONFIG_COMMAND_H

#include "common/config/config.h"

/* Of most commands. */
enum { CV_WORDS_MAX = 3 };

struct cv_command {
  const char *name;
  int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
  const char *about;                 /* NULL: not shown */
};

/* The whole of main() for `PROGRAM COMMAND ...`: finds and runs the command, or tells which there are. */
CV_MUST_USE int cv_command_main(const char *program, const char *about, const struct cv_command *commands, size_t count,
                                int argc, char **argv);

/*
 * Reads options in any order with the command's other words (`FILE`), of which there must be `least` to `most`; `words`
 * has room for `most`. Returns -1 to go on, else the exit status, as cv_config_start does.
 */
CV_MUST_USE int cv_command_options(const struct cv_config_table *table, int argc, char **argv, size_t least,
                                   size_t most, const char **words, void *into);

/* Prints "PROGRAM COMMAND: ..." and returns the status: 2 for what was wrong with a word, a file or an option. */
int cv_command_fail(const struct cv_config_table *table, int status, const char *fmt, ...) CV_PRINTF(3, 4);

#endif
