/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/audit/audit.h"
#include "lab/audit/plan.h"
#include "lab/command/command.h"
#include "lab/run/pool.h"

#define AT(field) offsetof(struct settings, field)

/* The probability that an audit of sound parts reports any false claim. */
static const double ERROR = 1e-3;

struct settings {
  uint64_t runs, seed, jobs;
  char *only;
  bool full, json;
};

static const struct cv_config_rule rules[] = {
    {.key = "runs",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(runs),
     .low = 1000,
     .high = 1e9,
     .fallback = "100000",
     .help = "runs on each of two neighbouring inputs; one 25th of them where a sweep changes every item in turn"},
    {.key = "only", .type = CV_CONFIG_TEXT, .offset = AT(only), .help = "audit only this part: hybrid, pipeline, ..."},
    {.key = "full",
     .type = CV_CONFIG_BOOL,
     .offset = AT(full),
     .fallback = "false",
     .help = "test more lengths and epsilons, with more runs per item"},
    CV_LAB_CHANCE_RULES(AT(seed), AT(jobs)),
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = AT(json),
     .fallback = "false",
     .help = "print one JSON object per line"},
};

static const struct cv_config_table table = {
    .program = "crowdveil-lab audit",
    .about =
        "Lower bounds on the true epsilon of every mechanism, privatizer and pipeline, from what an adversary sees "
        "of two neighbouring inputs. Exit status 1 if a claim is found to be false.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static const char *verdict_text(const struct cv_audit_subject *subject, const struct cv_audit_verdict *verdict) {
  if (subject->is_sound) {
    return cv_audit_exceeds(subject, verdict) ? "CLAIM IS FALSE" : "holds";
  }
  return cv_audit_exceeds(subject, verdict) ? "excess, as known" : "no excess found";
}

static void print_row(const struct cv_audit_subject *subject, const struct cv_audit_verdict *verdict) {
  char event[160];
  cv_audit_describe(&verdict->event, subject, event, sizeof(event));
  (void)printf("%-20s %-34s %8.3f %9.3f  %-16s %s\n", subject->part, subject->setting, subject->epsilon,
               verdict->certified < 0 ? 0 : verdict->certified, verdict_text(subject, verdict), event);
}

/* The subject of the sweep [at, end) whose certified epsilon is the largest share of its claim. */
static size_t worst_of(const struct cv_audit_subject *subjects, const struct cv_audit_verdict *verdicts, size_t at,
                       size_t end) {
  size_t worst = at;
  for (size_t i = at + 1; i < end; i++) {
    double here = verdicts[i].certified / subjects[i].epsilon,
           there = verdicts[worst].certified / subjects[worst].epsilon;
    worst = here > there ? i : worst;
  }
  return worst;
}

/* Prints one line per subject, and one line for a whole sweep: its worst subject stands for all. */
static void print_text(const struct cv_audit_subject *subjects, const struct cv_audit_verdict *verdicts, size_t count) {
  (void)printf("%-20s %-34s %8s %9s  %-16s %s\n", "part", "setting", "claimed", "certified", "verdict", "event");
  for (size_t at = 0, end = 0; at < count; at = end) {
    for (end = at + 1; end < count && subjects[at].sweep != 0 && subjects[end].sweep == subjects[at].sweep; end++) {
    }
    size_t worst = worst_of(subjects, verdicts, at, end);
    struct cv_audit_subject shown = subjects[worst];
    if (end - at > 1) {
      size_t used = strlen(shown.setting);
      (void)snprintf(shown.setting + used, sizeof(shown.setting) - used, " of %zu", end - at);
    }
    print_row(&shown, &verdicts[worst]);
  }
}

static void print_json(const struct cv_audit_subject *subject, const struct cv_audit_verdict *verdict) {
  char event[1024];
  cv_audit_describe(&verdict->event, subject, event, sizeof(event));
  json_t *row = json_pack("{s:s, s:s, s:b, s:f, s:f, s:f, s:b, s:s, s:I, s:I, s:I, s:f}", "part", subject->part,
                          "setting", subject->setting, "sound", subject->is_sound, "claimed", subject->epsilon, "delta",
                          subject->delta, "certified", verdict->certified < 0 ? 0 : verdict->certified, "exceeds",
                          cv_audit_exceeds(subject, verdict), "event", event, "hits", (json_int_t)verdict->hits[0],
                          "hits_neighbour", (json_int_t)verdict->hits[1], "runs", (json_int_t)verdict->runs, "seconds",
                          verdict->seconds);
  cv_lab_print_object(row);
}

/* Returns the number of sound parts whose claim was found false. */
static size_t print_all(const struct cv_audit_subject *subjects, const struct cv_audit_verdict *verdicts, size_t count,
                        const struct settings *settings) {
  size_t exceeded = 0;
  for (size_t i = 0; i < count; i++) {
    exceeded += subjects[i].is_sound && cv_audit_exceeds(&subjects[i], &verdicts[i]);
    if (settings->json) {
      print_json(&subjects[i], &verdicts[i]);
    }
  }
  if (!settings->json) {
    print_text(subjects, verdicts, count);
    (void)printf(
        "\n%zu pairs of neighbouring inputs, up to %llu runs on each input, any false alarm has probability below %g: "
        "%zu claims found false\n",
        count, (unsigned long long)settings->runs, ERROR, exceeded);
  }
  return exceeded;
}

static int audit(const struct settings *settings) {
  struct cv_audit_plan *plan;
  struct cv_why why;
  enum cv_err err = cv_audit_plan_new(settings->only, settings->full, &plan, &why);
  if (err != CV_OK) {
    return cv_command_fail(&table, cv_config_exit_status(err), "%s", why.text);
  }
  size_t count, exceeded = SIZE_MAX; /* SIZE_MAX: an audit that did not finish must not exit with status 0 */
  const struct cv_audit_subject *subjects = cv_audit_plan_subjects(plan, &count);
  const struct cv_audit_settings how = {
      .runs = settings->runs,
      .seed = settings->seed,
      .jobs = settings->jobs == 0 ? cv_lab_processors() : (unsigned)settings->jobs,
      .error = ERROR,
      .progress = isatty(STDERR_FILENO) ? stderr : NULL,
  };
  struct cv_audit_verdict *verdicts = calloc(count, sizeof(*verdicts));
  err = verdicts == NULL ? CV_ERR_NOMEM : cv_audit_run(subjects, count, &how, verdicts);
  if (err == CV_OK) {
    exceeded = print_all(subjects, verdicts, count, settings);
  } else {
    (void)cv_command_fail(&table, 1, "%s", cv_err_text(err));
  }
  free(verdicts);
  cv_audit_plan_free(plan);
  return exceeded == 0 ? 0 : 1;
}

int cv_lab_audit(int argc, char **argv) {
  struct settings settings = {0};
  int status = cv_command_options(&table, argc, argv, 0, 0, NULL, &settings);
  if (status < 0) {
    status = audit(&settings);
  }
  cv_config_fini(&table, &settings);
  return status;
}
