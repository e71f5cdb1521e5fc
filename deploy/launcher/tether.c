/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil tether PARENT PROGRAM ARGUMENT...: executes PROGRAM so that it gets SIGTERM when process PARENT ends. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base/text.h"
#include "deploy/launcher/command.h"

int cv_launcher_tether(int argc, char **argv) {
  if (argc < 3) {
    (void)fprintf(stderr, "crowdveil tether: missing argument; usage: crowdveil tether PARENT PROGRAM ARGUMENT...\n");
    return 2;
  }
  (void)signal(SIGPIPE, SIG_DFL);
  (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
  /* Checked after prctl(): a parent that ended before it would not trigger the signal. */
  if (getppid() != (pid_t)strtol(argv[1], NULL, 10)) {
    return 1;
  }
  (void)execv(argv[2], argv + 2);
  const char *reason = strerror(errno);
  (void)fprintf(stderr, "crowdveil tether: %s: %s\n", cv_text_line(argv[2]).text, reason);
  return 1;
}
