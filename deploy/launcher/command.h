/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of `crowdveil`: one file each, one row in the table of main.c. A command gets its own arguments
 * (argv[0] is its name), prints at most one line about an error, and returns the exit status: 0, 1, or 2 for usage and
 * configuration.
 */
#ifndef CV_LAUNCHER_COMMAND_H
#define CV_LAUNCHER_COMMAND_H

#include "common/base/err.h"
#include "common/config/command.h"

int cv_command_pki(int argc, char **argv);
int cv_command_submit(int argc, char **argv);
int cv_command_watch(int argc, char **argv);
int cv_command_cancel(int argc, char **argv);
int cv_command_purge(int argc, char **argv);
int cv_command_status(int argc, char **argv);
int cv_command_export(int argc, char **argv);
int cv_command_ledger(int argc, char **argv);
int cv_command_recover(int argc, char **argv);
int cv_command_doctor(int argc, char **argv);
int cv_command_replay(int argc, char **argv);
int cv_command_verify(int argc, char **argv);
int cv_command_up(int argc, char **argv);
/* Not for people: runs a program that ends when its parent does. */
int cv_command_tether(int argc, char **argv);

/* A campaign's number as it was typed: 1 and up. CV_ERR_INVALID otherwise. */
CV_MUST_USE enum cv_err cv_command_number(const char *word, uint64_t *ret, struct cv_why *why);

#endif
