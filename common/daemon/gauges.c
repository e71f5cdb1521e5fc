/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/gauges.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/admin/metrics.h"
#include "common/base/clock.h"
#include "common/config/config.h"
#include "common/daemon/logging.h"

void cv_daemon_gauges_open(struct cv_daemon_gauges *gauges, const char *program) {
  *gauges = (struct cv_daemon_gauges){.program = program, .started_ms = cv_clock_wall_ms()};
  gauges->memory = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
}

void cv_daemon_gauges_close(struct cv_daemon_gauges *gauges) {
  if (gauges->memory >= 0) {
    (void)close(gauges->memory);
    gauges->memory = -1;
  }
}

static double seconds(uint64_t ms) {
  return (double)ms / 1000;
}

static void put_build(const struct cv_daemon_gauges *gauges, struct cv_buf *out) {
  const struct cv_metric_label labels[] = {
      {"program", gauges->program}, {"version", cv_config_version()}, {"revision", cv_config_revision}};
  cv_metric_info(out, "crowdveil_build_info", "1; the labels say which program runs.", labels, CV_COUNT(labels));
}

/* The resident memory in bytes, the second number of statm in pages; 0 if it is not known. */
static double resident_bytes(const struct cv_daemon_gauges *gauges) {
  char text[128];
  ssize_t n = gauges->memory < 0 ? -1 : pread(gauges->memory, text, sizeof(text) - 1, 0);
  text[n > 0 ? n : 0] = '\0';
  const char *second = strchr(text, ' ');
  return second == NULL ? 0 : (double)strtoul(second, NULL, 10) * (double)sysconf(_SC_PAGESIZE);
}

/* The names that every client library of Prometheus has for these. */
static void put_process(const struct cv_daemon_gauges *gauges, struct cv_buf *out) {
  struct timespec cpu = {0};
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  cv_metric_gauge(out, "process_start_time_seconds", "Start of the process, in seconds since 1970.",
                  seconds(gauges->started_ms));
  cv_metric_family(out, "process_cpu_seconds_total", "Processor time used, in seconds.", "counter");
  cv_metric_sample(out, "process_cpu_seconds_total", NULL, NULL, (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
  cv_metric_gauge(out, "process_resident_memory_bytes", "Resident memory, in bytes.", resident_bytes(gauges));
}

static void put_certificates(const struct cv_daemon_gauges *gauges, struct cv_buf *out) {
  static const char ends[] = "crowdveil_certificate_expiry_timestamp_seconds", reloads[] = "crowdveil_reloads_total";
  cv_metric_family(out, ends, "End of the daemon's own certificate, of its CA's and of the CRL, in seconds since 1970.",
                   "gauge");
  cv_metric_sample(out, ends, "certificate", "own", (double)gauges->ends.own_s);
  cv_metric_sample(out, ends, "certificate", "ca", (double)gauges->ends.ca_s);
  if (gauges->has_crl) {
    cv_metric_sample(out, ends, "certificate", "crl", (double)gauges->ends.crl_s);
  }
  cv_metric_family(out, reloads, "Times that the certificates were read again; failed: the old ones were kept.",
                   "counter");
  cv_metric_sample(out, reloads, "outcome", "ok", (double)gauges->reloads);
  cv_metric_sample(out, reloads, "outcome", "failed", (double)gauges->reloads_failed);
}

static double file_bytes(const char *folder, const char *name, const char *suffix) {
  char path[PATH_MAX];
  struct stat info;
  int n = snprintf(path, sizeof(path), "%s/%s%s", folder, name, suffix);
  return n < (int)sizeof(path) && stat(path, &info) == 0 ? (double)info.st_size : 0;
}

static void put_disk(const struct cv_daemon_gauges *gauges, struct cv_buf *out) {
  double bytes = 0;
  if (gauges->state != NULL && gauges->database != NULL) {
    bytes = file_bytes(gauges->state, gauges->database, "") + file_bytes(gauges->state, gauges->database, "-wal");
  }
  cv_metric_gauge(out, "crowdveil_state_bytes", "Size of the database and its log file, in bytes.", bytes);
  cv_metric_histogram(out, "crowdveil_commit_duration_seconds",
                      "Time that a commit took, in seconds, with the audit log.", &gauges->committer->took_s);
  cv_metric_gauge(out, "crowdveil_last_commit_timestamp_seconds",
                  "Last commit since the start, in seconds since 1970; 0: none yet.", seconds(gauges->committed_ms));
}

void cv_daemon_gauges_put(const struct cv_daemon_gauges *gauges, struct cv_buf *out) {
  put_build(gauges, out);
  put_process(gauges, out);
  cv_metric_gauge(out, "crowdveil_healthy", "1 if /health answers ok.", gauges->is_healthy);
  cv_metric_gauge(out, "crowdveil_ready", "1 if /readyz answers ok.", gauges->is_ready);
  cv_metric_family(out, "crowdveil_log_lines_lost_total",
                   "Lines of the log that neither the journal nor standard error took.", "counter");
  cv_metric_sample(out, "crowdveil_log_lines_lost_total", NULL, NULL, (double)cv_logging_lost());
  put_certificates(gauges, out);
  put_disk(gauges, out);
}
