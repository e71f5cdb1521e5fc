/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/program.h"

#include <signal.h>

#include "common/admin/probe.h"
#include "common/config/standard.h"
#include "common/daemon/notify.h"

/* What runs in place of the daemon; -1: nothing. A probe needs neither state nor TLS files, and an examination no TLS
 * files that are not there yet. */
static int run_instead(const struct cv_daemon_program *program, const void *settings) {
  const struct cv_daemon_settings *common =
      (const struct cv_daemon_settings *)((const char *)settings + program->common);
  struct cv_why why;
  if (common->probe) {
    return cv_probe_run(program->table->program, common->admin);
  }
  if (common->backup != NULL) {
    return cv_backup_run(&(struct cv_backup_command){.program = program->table->program,
                                                     .admin = common->admin,
                                                     .to = common->backup,
                                                     .check = program->check_copy,
                                                     .settings = settings});
  }
  enum cv_err err = cv_logging_begin(&common->log, program->table->program, &why);
  if (err != CV_OK) {
    cv_log_early(program->table->program, CV_LOG_ERROR, "%s", why.text);
    return cv_config_exit_status(err);
  }
  cv_notify_open();
  if (common->channel.wait_ms > 0) {
    cv_notify_extend(common->channel.wait_ms + CV_NOTIFY_START_MS);
  }
  int status = program->instead == NULL ? -1 : program->instead(settings);
  return status < 0 ? cv_channel_wait(program->table->program, &common->channel) : status;
}

int cv_daemon_main(const struct cv_daemon_program *program, int argc, char **argv, void *settings) {
  cv_standard_open();
  /* Until the daemon takes it (daemon.c): an operator who asks for more lines too early must not kill the program. */
  (void)signal(SIGUSR1, SIG_IGN);
  int status = cv_config_start(program->table, argc, argv, settings);
  status = status < 0 ? run_instead(program, settings) : status;
  /* A daemon's lines are no result: it serves on without them. */
  status = status < 0 ? program->run(settings) : cv_standard_close(program->table->program, status);
  cv_config_fini(program->table, settings);
  return status;
}
