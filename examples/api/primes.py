#!/usr/bin/env python3
"""A Python program that profiles itself: the interpreter's CPU time, and with LD_PRELOAD=libddprof.so its memory too.

    python3 primes.py libddprof.so primes.pb.gz
"""
import ctypes
import sys


class Options(ctypes.Structure):
    """As in ddprof.h."""
    _fields_ = [("size", ctypes.c_size_t)] + [
        (name, ctypes.c_char_p) for name in ("service", "environment", "service_version", "tags", "preset", "event", "url", "output", "log_mode", "log_level")
    ] + [(name, ctypes.c_uint32) for name in ("upload_period", "cpu_duration", "frequency", "exit_timeout")] + [
        ("program", ctypes.c_char_p), ("arguments", ctypes.POINTER(ctypes.c_char_p))]


def primes(limit):
    sieve = bytearray([1]) * limit
    for number in range(2, limit):
        if sieve[number]:
            sieve[number * number::number] = bytes(len(range(number * number, limit, number)))
    return sum(sieve) - 2


def main():
    ddprof = ctypes.CDLL(sys.argv[1])
    ddprof.ddprof_last_error.restype = ctypes.c_char_p
    options = Options(ctypes.sizeof(Options), service=b"primes", preset=b"cpu_live_heap", output=sys.argv[2].encode())
    if ddprof.ddprof_start(ctypes.byref(options)) != 0:
        print("not profiled:", ddprof.ddprof_last_error().decode(), file=sys.stderr)
    print("status", ddprof.ddprof_status(), ddprof.ddprof_last_error().decode())
    ddprof.ddprof_label_set(b"phase", b"sieve")
    kept = [bytes(100000) for _ in range(500)]
    print(len(kept), sum(primes(300000) for _ in range(10)), "primes")
    if ddprof.ddprof_stop() != 0:
        print("profile:", ddprof.ddprof_last_error().decode(), file=sys.stderr)


main()
