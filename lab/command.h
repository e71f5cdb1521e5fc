/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `crowdveil-lab`, as in deploy/launcher/command.h: one file each, one row in the table of main.c. */
#ifndef CV_LAB_COMMAND_H
#define CV_LAB_COMMAND_H

#include "common/config/command.h"

/* 2 for what the user said, also of a file that should not be there yet; 1 for the rest. */
static inline int cv_lab_exit_status(enum cv_err err) {
  return err == CV_ERR_EXISTS ? 2 : cv_config_exit_status(err);
}

int cv_lab_audit(int argc, char **argv);
int cv_lab_export(int argc, char **argv);
int cv_lab_join(int argc, char **argv);
int cv_lab_list(int argc, char **argv);
int cv_lab_report(int argc, char **argv);
int cv_lab_run(int argc, char **argv);

#endif
