// hanging_fs FOLDER SOURCE UID [private]: mounts a file system at FOLDER with the files of the folder SOURCE
// in it, for reading, as if by user UID. "private": nobody but UID may enter it, not even root. Needs root,
// and no libfuse.
//
// It answers "mounted" when it is there. A line "hang" on standard input makes it take requests and never
// answer: who waits for one cannot be interrupted, not even by SIGKILL, as with a server that is gone. "hang
// OFFSET" does so with reads from that offset of a file on alone. "go" makes it answer again, and answers
// the reads that wait since "hang OFFSET". At the end of its input, or when it is killed, all waiting calls
// fail.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_FILES = 64, MAX_WAITING = 64, FIRST_NODE = 2, BUFFER_BYTES = 1 << 20 };

static char* names[MAX_FILES];
static int files[MAX_FILES];
static unsigned count;
static int device;

struct read_request {
  struct fuse_in_header header;
  struct fuse_read_in body;
};
static struct read_request waiting[MAX_WAITING];
static unsigned waiting_count;

static void reply(uint64_t unique, int error, const void* data, size_t bytes) {
  struct fuse_out_header header = {
      .len = (uint32_t)(sizeof header + bytes), .error = -error, .unique = unique};
  struct iovec parts[2] = {{&header, sizeof header}, {(void*)data, bytes}};
  if (writev(device, parts, bytes > 0 ? 2 : 1) < 0 && errno != ENOENT) perror("reply");
}

static struct fuse_attr attributes_of(uint64_t node) {
  struct fuse_attr attr = {.ino = node, .mode = S_IFDIR | 0755, .nlink = 1, .blksize = 4096};
  struct stat status;
  if (node >= FIRST_NODE && fstat(files[node - FIRST_NODE], &status) == 0) {
    attr.mode = S_IFREG | 0755;
    attr.uid = status.st_uid;
    attr.gid = status.st_gid;
    attr.size = (uint64_t)status.st_size;
    attr.blocks = (uint64_t)status.st_blocks;
  }
  return attr;
}

static void answer(const struct fuse_in_header* request, const void* body, char* buffer) {
  const uint64_t unique = request->unique;
  if (request->nodeid != FUSE_ROOT_ID && request->opcode != FUSE_INIT &&
      request->nodeid - FIRST_NODE >= count && request->nodeid != 0)
    return reply(unique, ENOENT, NULL, 0);
  switch (request->opcode) {
    case FUSE_INIT: {
      const struct fuse_init_in* in = body;
      struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
                                  .minor = FUSE_KERNEL_MINOR_VERSION,
                                  .max_readahead = in->max_readahead,
                                  .max_write = 65536,
                                  .time_gran = 1};
      return reply(unique, 0, &out, sizeof out);
    }
    case FUSE_LOOKUP:
      for (unsigned i = 0; i < count; ++i) {
        if (strcmp(names[i], body) != 0) continue;
        struct fuse_entry_out out = {.nodeid = FIRST_NODE + i, .attr = attributes_of(FIRST_NODE + i)};
        return reply(unique, 0, &out, sizeof out);
      }
      return reply(unique, ENOENT, NULL, 0);
    case FUSE_GETATTR: {
      struct fuse_attr_out out = {.attr = attributes_of(request->nodeid)};
      return reply(unique, 0, &out, sizeof out);
    }
    case FUSE_OPEN:
    case FUSE_OPENDIR: {
      struct fuse_open_out out = {0};
      return reply(unique, 0, &out, sizeof out);
    }
    case FUSE_READ: {
      const struct fuse_read_in* in = body;
      const ssize_t got = pread(files[request->nodeid - FIRST_NODE], buffer, in->size, (off_t)in->offset);
      return reply(unique, got < 0 ? errno : 0, buffer, got < 0 ? 0 : (size_t)got);
    }
    case FUSE_STATFS: {
      struct fuse_statfs_out out = {.st = {.bsize = 4096, .namelen = 255}};
      return reply(unique, 0, &out, sizeof out);
    }
    case FUSE_READDIR:
    case FUSE_FLUSH:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_ACCESS:
      return reply(unique, 0, NULL, 0);
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return;
    case FUSE_CREATE:
    case FUSE_MKDIR:
    case FUSE_SETATTR:
    case FUSE_UNLINK:
      return reply(unique, EROFS, NULL, 0);
    default:
      return reply(unique, ENOSYS, NULL, 0);
  }
}

// Whether the request is answered while reads from `offset` on hang: 0 stands for everything.
static int is_answered(const void* request, uint64_t offset) {
  const struct read_request* read = request;
  if (offset == 0) return 0;
  if (read->header.opcode != FUSE_READ || read->body.offset + read->body.size <= offset) return 1;
  if (waiting_count < MAX_WAITING) waiting[waiting_count++] = *read;
  return 0;
}

static void answer_waiting(char* buffer) {
  for (unsigned i = 0; i < waiting_count; ++i) answer(&waiting[i].header, &waiting[i].body, buffer);
  waiting_count = 0;
}

static void open_files(const char* folder) {
  DIR* listing = opendir(folder);
  struct dirent* entry;
  while (listing != NULL && (entry = readdir(listing)) != NULL && count < MAX_FILES) {
    const int fd = openat(dirfd(listing), entry->d_name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) continue;
    names[count] = strdup(entry->d_name);
    files[count++] = fd;
  }
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  open_files(argv[2]);
  device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  char options[200];
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%s,group_id=%s%s", device, argv[3], argv[3],
           argc > 4 ? "" : ",allow_other");
  if (device < 0 || mount("hanging_fs", argv[1], "fuse.hanging", MS_NOSUID | MS_NODEV, options) != 0)
    return perror(argv[1]), 1;
  setvbuf(stdout, NULL, _IONBF, 0);

  char* request = malloc(BUFFER_BYTES);
  char* buffer = malloc(BUFFER_BYTES);
  int hangs = 0, is_ready = 0;
  uint64_t hangs_from = 0;
  while (1) {
    struct pollfd waiters[2] = {{.fd = device, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    if (poll(waiters, 2, -1) < 0) break;
    if (waiters[0].revents & POLLERR) break;  // unmounted
    if (waiters[1].revents) {
      char line[32] = "";
      if (read(STDIN_FILENO, line, sizeof line - 1) <= 0) break;
      hangs = strncmp(line, "hang", 4) == 0;
      hangs_from = hangs ? strtoull(line + 4, NULL, 10) : 0;
      if (!hangs) answer_waiting(buffer);
      printf("%s", hangs ? "hangs\n" : "goes\n");
    }
    if (!(waiters[0].revents & POLLIN)) continue;
    if (read(device, request, BUFFER_BYTES) < 0) {
      if (errno == EINTR || errno == EAGAIN || errno == ENOENT) continue;
      break;
    }
    const struct fuse_in_header* header = (const struct fuse_in_header*)request;
    if (!hangs || is_answered(request, hangs_from)) answer(header, request + sizeof *header, buffer);
    if (!is_ready && (is_ready = 1)) printf("mounted\n");
  }
  umount2(argv[1], MNT_DETACH);
  return 0;
}
