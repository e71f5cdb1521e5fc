/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a program with several commands: finds the command, separates options from arguments. */
#ifndef CV_CONFIG_COMMAND_H
#define CV_CONFIG_COMMAND_H

#include "common/config/config.h"

/* Arguments of most commands, at most. */
enum { CV_WORDS_MAX = 3 };

struct cv_command {
  const char *name;
  int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
  const char *about;                 /* NULL: internal, not listed in the help */
};

/* The whole of main() for `PROGRAM COMMAND ...`: runs the command and returns its exit status; 2 if it is unknown. */
CV_MUST_USE int cv_command_main(const char *program, const char *about, const struct cv_command *commands, size_t count,
                                int argc, char **argv);

/*
 * Parses options and other arguments (`FILE`) in any order. `words` receives the other arguments, `least` to `most` of
 * them; it has room for `most`. Returns -1 to continue, else the exit status, like cv_config_start().
 */
CV_MUST_USE int cv_command_options(const struct cv_config_table *table, int argc, char **argv, size_t least,
                                   size_t most, const char **words, void *into);

/* Prints "PROGRAM COMMAND: ..." on standard error and returns `status`: 2 for a wrong argument, file or option. */
int cv_command_fail(const struct cv_config_table *table, int status, const char *fmt, ...) CV_PRINTF(3, 4);

#endif
