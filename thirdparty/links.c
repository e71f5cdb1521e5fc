/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/links.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/table.h"

struct cv_links_entry {
  char broker[CV_NAME_BYTES];
  struct cv_link link;
  UT_hash_handle hh;
};

static struct cv_links_entry *find(const struct cv_links *links, const char *broker) {
  struct cv_links_entry *entry = NULL;
  HASH_FIND_STR(links->entries, broker, entry);
  return entry;
}

static struct cv_links_entry *add(struct cv_links *links, const char *broker) {
  struct cv_links_entry *entry = calloc(1, sizeof(*entry));
  if (entry == NULL) {
    return NULL;
  }
  (void)snprintf(entry->broker, sizeof(entry->broker), "%s", broker);
  if (CV_TABLE_ADD_TEXT(links->entries, broker, entry) != CV_OK) {
    free(entry);
    return NULL;
  }
  return entry;
}

enum cv_err cv_links_take(struct cv_links *links, const struct cv_thirdparty_link *link, uint64_t wall_ms) {
  struct cv_links_entry *entry = find(links, link->broker);
  entry = entry != NULL ? entry : add(links, link->broker);
  if (entry == NULL) {
    return CV_ERR_NOMEM;
  }
  entry->link = (struct cv_link){
      .is_connected = link->is_connected, .term = link->term, .since_ms = wall_ms, .version = entry->link.version + 1};
  return CV_OK;
}

const struct cv_link *cv_links_find(const struct cv_links *links, const char *broker) {
  const struct cv_links_entry *entry = find(links, broker);
  return entry == NULL ? NULL : &entry->link;
}

void cv_links_fini(struct cv_links *links) {
  CV_TABLE_DRAIN(links->entries, free);
  links->entries = NULL;
}
