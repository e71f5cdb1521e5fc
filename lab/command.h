/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `crowdveil-lab`, as in deploy/launcher/command.h: one file each, one row in the table of main.c. */
#ifndef CV_LAB_COMMAND_H
#define CV_LAB_COMMAND_H

#include "common/config/command.h"

int cv_lab_audit(int argc, char **argv);
int cv_lab_list(int argc, char **argv);
int cv_lab_run(int argc, char **argv);

#endif
