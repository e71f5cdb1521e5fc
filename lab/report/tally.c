/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report/tally.h"

#include <string.h>

#include "common/base/text.h"
#include "lab/report/parts.h"

const char *const cv_lab_tally_heads[CV_LAB_VERDICTS] = {"hold", "do not hold", "no effect", "open"};

static bool is_in(const struct cv_lab_group *group, const struct cv_lab_entry *entry) {
  return group->source == NULL || strcmp(group->source, entry->source) == 0;
}

static void count(const struct cv_lab_entry *entry, bool is_ours, struct cv_lab_tally *tally) {
  for (size_t i = 0; i < entry->claims; i++) {
    if (entry->claim[i].is_ours == is_ours) {
      tally->count[entry->claim[i].verdict]++;
      tally->total++;
    }
  }
}

struct cv_lab_tally cv_lab_tally_of_entry(const struct cv_lab_entry *entry, bool is_ours) {
  struct cv_lab_tally tally = {0};
  count(entry, is_ours, &tally);
  return tally;
}

struct cv_lab_tally cv_lab_tally_of(const struct cv_lab_report *report, const struct cv_lab_group *group) {
  struct cv_lab_tally tally = {0};
  for (size_t i = 0; i < report->entries; i++) {
    if (is_in(group, &report->entry[i])) {
      count(&report->entry[i], group->is_ours, &tally);
    }
  }
  return tally;
}

void cv_lab_tally_text(const struct cv_lab_tally *tally, char to[CV_LAB_TALLY_TEXT]) {
  static const char *const one[CV_LAB_VERDICTS] = {"holds", "does not hold", "has no effect", "is open"};
  static const char *const many[CV_LAB_VERDICTS] = {"hold", "do not hold", "have no effect", "are open"};
  size_t used = 0;
  for (size_t i = 0; i < CV_LAB_VERDICTS; i++) {
    cv_text_print(to + used, CV_LAB_TALLY_TEXT - used, "%s%zu %s", i == 0 ? "" : ", ", tally->count[i],
                  tally->count[i] == 1 ? one[i] : many[i]);
    used += strlen(to + used);
  }
}

void cv_lab_report_counts(const struct cv_lab_report *report, char papers[CV_LAB_TALLY_TEXT],
                          char ours[CV_LAB_TALLY_TEXT]) {
  char *const texts[] = {papers, ours};
  for (int i = 0; i < 2; i++) {
    struct cv_lab_tally tally = cv_lab_tally_of(report, &(struct cv_lab_group){.is_ours = i == 1});
    cv_lab_tally_text(&tally, texts[i]);
  }
}

/* True if an entry before number `entry` has the same source and claims of this kind. */
static bool is_repeated(const struct cv_lab_report *report, size_t entry, bool is_ours) {
  for (size_t i = 0; i < entry; i++) {
    if (cv_lab_entry_has(&report->entry[i], is_ours) &&
        strcmp(report->entry[i].source, report->entry[entry].source) == 0) {
      return true;
    }
  }
  return false;
}

bool cv_lab_group_next(const struct cv_lab_report *report, struct cv_lab_group *group) {
  bool is_past = group->source == NULL;
  for (size_t i = 0; i < report->entries; i++) {
    const struct cv_lab_entry *entry = &report->entry[i];
    if (!cv_lab_entry_has(entry, group->is_ours) || is_repeated(report, i, group->is_ours)) {
      continue;
    }
    if (is_past) {
      group->source = entry->source;
      return true;
    }
    is_past = strcmp(group->source, entry->source) == 0;
  }
  return false;
}

const char *cv_lab_group_name(const struct cv_lab_group *group) {
  return group->source[0] == '\0' ? "about no paper" : group->source;
}

bool cv_lab_failing_find(const struct cv_lab_report *report, const struct cv_lab_group *group,
                         struct cv_lab_failing *at) {
  for (; at->entry < report->entries; at->entry++, at->claim = 0) {
    const struct cv_lab_entry *entry = &report->entry[at->entry];
    for (; is_in(group, entry) && at->claim < entry->claims; at->claim++) {
      const struct cv_lab_judged *claim = &entry->claim[at->claim];
      if (claim->is_ours == group->is_ours && claim->verdict == CV_LAB_FAILS) {
        return true;
      }
    }
  }
  return false;
}
