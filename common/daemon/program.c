/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/program.h"

#include "common/admin/probe.h"
#include "common/base/log.h"

/* A probe needs neither state nor TLS files, and an examination no TLS files that are not there yet. */
static int run(const struct cv_daemon_program *program, const void *settings) {
  const struct cv_daemon_settings *common =
      (const struct cv_daemon_settings *)((const char *)settings + program->common);
  cv_log_init(program->table->program, CV_LOG_INFO);
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
  int status = program->instead == NULL ? -1 : program->instead(settings);
  status = status < 0 ? cv_channel_wait(program->table->program, &common->channel) : status;
  return status < 0 ? program->run(settings) : status;
}

int cv_daemon_main(const struct cv_daemon_program *program, int argc, char **argv, void *settings) {
  int status = cv_config_start(program->table, argc, argv, settings);
  status = status < 0 ? run(program, settings) : status;
  cv_config_fini(program->table, settings);
  return status;
}
