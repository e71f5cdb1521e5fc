/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil tether PARENT PROGRAM ARGUMENT...: becomes PROGRAM, which gets SIGTERM when process PARENT ends. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "deploy/launcher/command.h"

int cv_command_tether(int argc, char **argv) {
  if (argc < 3) {
    (void)fprintf(stderr, "crowdveil tether: something is missing; expected a process and a program\n");
    return 2;
  }
  (void)signal(SIGPIPE, SIG_DFL);
  (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != (pid_t)strtol(argv[1], NULL, 10)) {
    return 1; /* it has ended already */
  }
  (void)execv(argv[2], argv + 2);
  (void)fprintf(stderr, "crowdveil tether: %s: %s\n", argv[2], strerror(errno));
  return 1;
}
