/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-lab: the platform's parts in one process, for research. `crowdveil-lab COMMAND --help` tells the rest. */
#include "lab/command/command.h"

static const struct cv_command commands[] = {
    {"list", cv_lab_list, "name the experiments"},
    {"run", cv_lab_run, "run an experiment: numbers, a table, a figure"},
    {"report", cv_lab_report, "run all of them and report what holds"},
    {"merge", cv_lab_join, "join the files of several runs of an experiment"},
    {"export", cv_lab_export, "print a file of results as CSV or JSON"},
    {"audit", cv_lab_audit, "try to find out more than each mechanism, privatizer and pipeline claims to tell"},
};

int main(int argc, char **argv) {
  return cv_command_main("crowdveil-lab", "Private crowdsourcing in one process.", commands, CV_COUNT(commands), argc,
                         argv);
}
