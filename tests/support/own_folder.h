/* SPDX-License-Identifier: Apache-2.0 */
/* One folder for all tests of a program, as the fixture of its group. Include after cmocka.h. */
#ifndef CV_TESTS_OWN_FOLDER_H
#define CV_TESTS_OWN_FOLDER_H

#include "tests/support/folder.h"

static struct folder folder;

static int make_folder(void **state) {
  folder_make(&folder);
  return 0;
}

static int remove_folder(void **state) {
  folder_remove(&folder);
  return 0;
}

#endif
