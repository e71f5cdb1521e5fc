/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-lab: the platform's parts in one process, for research. `crowdveil-lab COMMAND --help` tells the rest. */
#include <unistd.h>

#include "lab/command.h"

static const struct cv_command commands[] = {
    {"audit", cv_lab_audit, "try to find out more than each mechanism, privatizer and pipeline claims to tell"},
};

unsigned cv_lab_processors(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : (unsigned)count;
}

int main(int argc, char **argv) {
  return cv_command_main("crowdveil-lab", "Private crowdsourcing in one process.", commands, CV_COUNT(commands), argc,
                         argv);
}
