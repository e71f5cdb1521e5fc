/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-lab: the platform's parts in one process, for research. `crowdveil-lab COMMAND --help` describes each
 * command. */
#include "lab/command/command.h"

static const struct cv_command commands[] = {
    {"list", cv_lab_list, "list the experiments that have a name"},
    {"run", cv_lab_run, "run an experiment: numbers, a table, a figure"},
    {"report", cv_lab_report, "run experiments and report which claims hold"},
    {"merge", cv_lab_join, "join the files of several runs of an experiment"},
    {"export", cv_lab_export, "print a file of results as CSV or JSON"},
    {"audit", cv_lab_audit, "test the privacy claims of every mechanism, privatizer and pipeline"},
};

int main(int argc, char **argv) {
  return cv_command_main("crowdveil-lab", "Private crowdsourcing in one process.", commands, CV_COUNT(commands), argc,
                         argv);
}
