/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of broker/both/anchor.c, redirected to a simulated disk (vfs.h); the rest of anchor.c is the product's
 * code. */
#ifndef CV_SIM_POSIX_H
#define CV_SIM_POSIX_H

#include <fcntl.h>
#include <unistd.h>

int sim_open(const char *path, int flags, int mode);
ssize_t sim_pread(int fd, void *to, size_t n, off_t at);
ssize_t sim_pwrite(int fd, const void *from, size_t n, off_t at);
int sim_fdatasync(int fd);
int sim_fsync(int fd);
int sim_close(int fd);

#define open      sim_open
#define pread     sim_pread
#define pwrite    sim_pwrite
#define fdatasync sim_fdatasync
#define fsync     sim_fsync
#define close     sim_close

#endif
