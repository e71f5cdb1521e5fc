/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a file that a program before 0.3.0 wrote, and what to do with it: no later program reads one. */
#ifndef CV_BASE_BEFORE_H
#define CV_BASE_BEFORE_H

#define CV_BEFORE "of a Crowdveil before 0.3.0, whose files are not read"
/* A broker's files: none of them is of use without the others. */
#define CV_BEFORE_BROKER \
  "move the files in the state folder, the anchor and the seal key away together, and set up anew"

#endif
