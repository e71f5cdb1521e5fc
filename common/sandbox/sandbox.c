/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sandbox/sandbox.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/sandbox/parts.h"

const char *const CV_SANDBOX_MODES[] = {"on", "require", "off", NULL};

/* In the order of the report; the longest comes last, in case the line is cut. */
enum { USER, PRIVILEGES, CAPABILITIES, CORE_DUMPS, SWAP, SECCOMP, LANDLOCK, PARTS };
static const char *const names[PARTS] = {"user", "new privileges", "capabilities", "core dumps",
                                         "swap", "seccomp",        "landlock"};

/* Reports the user; never off, because running as root is the operator's choice, for example in a container. */
static void tell_user(const struct cv_sandbox_settings *settings, struct cv_sandbox_part *ret) {
  const struct passwd *entry = getpwuid(geteuid());
  const char *hint = geteuid() == 0 && settings->user == NULL ? " (the setting user is not set)" : "";
  ret->on = true;
  if (entry != NULL) {
    (void)snprintf(ret->text, sizeof(ret->text), "%s%s", entry->pw_name, hint);
  } else {
    (void)snprintf(ret->text, sizeof(ret->text), "number %u%s", (unsigned)geteuid(), hint);
  }
}

static void put(struct cv_sandbox_report *report, const char *name, const struct cv_sandbox_part *part) {
  size_t used = strlen(report->text);
  (void)snprintf(report->text + used, sizeof(report->text) - used, "%s%s: %s%s", used == 0 ? "" : "; ", name,
                 part->on ? "" : "OFF, ", part->text);
  report->whole = report->whole && part->on;
}

void cv_sandbox_begin(const struct cv_sandbox_settings *settings) {
  if (settings->mode != CV_SANDBOX_OFF) {
    struct cv_sandbox_part
        part; /* not reported: cv_sandbox_enter() repeats both, because changing the user may undo them */
    cv_sandbox_core_dumps(&part);
    cv_sandbox_swap(&part);
  }
}

enum cv_err cv_sandbox_become(const struct cv_sandbox_settings *settings, struct cv_why *why) {
  /* Also with the sandbox off: a configured user is a wish of its own. */
  if (settings->user == NULL) {
    return CV_OK;
  }
  return cv_sandbox_change_user(settings->user, settings->mode != CV_SANDBOX_OFF, why);
}

enum cv_err cv_sandbox_enter(const struct cv_sandbox_settings *settings, const struct cv_sandbox_needs *needs,
                             struct cv_sandbox_report *ret, struct cv_why *why) {
  struct cv_sandbox_report report = {.whole = true};
  if (settings->mode == CV_SANDBOX_OFF) {
    *ret = (struct cv_sandbox_report){.text = "off, as configured"};
    return CV_OK;
  }
  struct cv_sandbox_part part[PARTS];
  tell_user(settings, &part[USER]);
  cv_sandbox_no_new_privileges(&part[PRIVILEGES]);
  cv_sandbox_core_dumps(&part[CORE_DUMPS]);
  cv_sandbox_swap(&part[SWAP]);
  cv_sandbox_landlock(needs, UINT_MAX, &part[LANDLOCK]);
  /* seccomp comes last, because it denies the system calls that the other parts need. */
  cv_sandbox_capabilities(&part[CAPABILITIES]);
  cv_sandbox_seccomp(needs, &part[SECCOMP]);
  for (size_t i = 0; i < PARTS; i++) {
    /* Only after all parts were tried: the message names the first that is missing, and nothing can be undone
     * anyway. */
    if (settings->mode == CV_SANDBOX_REQUIRE && !part[i].on) {
      return cv_fail(why, CV_ERR_STATE,
                     "sandbox is require, but %s is not available: %s; expected all parts, or sandbox: on", names[i],
                     part[i].text);
    }
    put(&report, names[i], &part[i]);
  }
  *ret = report;
  return CV_OK;
}

void cv_sandbox_shed(void) {
  struct cv_sandbox_part part; /* not reported: the programs may do without */
  cv_sandbox_core_dumps(&part);
  cv_sandbox_capabilities(&part);
  cv_sandbox_no_new_privileges(&part);
}
