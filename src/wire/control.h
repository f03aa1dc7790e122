/* What libddprof.so, by which a program profiles itself (include/ddprof.h), and the profiler that it starts
 * say to each other: packets of a socket that is the profiler's standard input and standard error. Plain C,
 * freestanding.
 *
 * The library sends one byte: what to do. A packet of the profiler that begins with DDPROF_CONTROL_MARK is an
 * answer; the byte behind that says which, and texts follow, each behind a zero byte. Any other packet is a
 * message for the user. The end of the connection is the end of either side. */
#ifndef DDPROF_WIRE_CONTROL_H
#define DDPROF_WIRE_CONTROL_H

enum ddprof_control_command {
  DDPROF_CONTROL_STOP = 's',
  DDPROF_CONTROL_FLUSH = 'f',
};

#define DDPROF_CONTROL_MARK 1

enum ddprof_control_answer {
  DDPROF_CONTROL_READY = 'r',   /* where the arena is (wire/heap.h), or nothing; then notices */
  DDPROF_CONTROL_FAILED = 'x',  /* why */
  DDPROF_CONTROL_FLUSHED = 'f', /* nothing, or why not */
  DDPROF_CONTROL_ENDED = 'e',   /* all profiles have been written or sent, or why not */
};

/* Longer ones are cut. */
#define DDPROF_CONTROL_BYTES 4096

#endif
